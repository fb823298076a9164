(* What every certificate rests on: finite sums, their algebra, derivatives along curves. *)
From Coq Require Import Reals Lra Lia Arith ZArith.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Fixpoint Sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => Sum m f + f m end.

Lemma Sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> Sum n f = Sum n g.
Proof. induction n; simpl; intros H; [easy|]. rewrite IHn, H; auto. Qed.
Lemma Sum_add n f g : Sum n f + Sum n g = Sum n (fun i => f i + g i).
Proof. induction n; simpl; [ring|]. rewrite <- IHn; ring. Qed.
Lemma Sum_sub n f g : Sum n f - Sum n g = Sum n (fun i => f i - g i).
Proof. induction n; simpl; [ring|]. rewrite <- IHn; ring. Qed.
Lemma Sum_opp n f : - Sum n f = Sum n (fun i => - f i).
Proof. induction n; simpl; [ring|]. rewrite <- IHn; ring. Qed.
Lemma Sum_mul_l n a f : a * Sum n f = Sum n (fun i => a * f i).
Proof. induction n; simpl; [ring|]. rewrite <- IHn; ring. Qed.
Lemma Sum_mul_r n a f : Sum n f * a = Sum n (fun i => f i * a).
Proof. induction n; simpl; [ring|]. rewrite <- IHn; ring. Qed.
Lemma Sum_zero n : Sum n (fun _ => 0) = 0.
Proof. induction n; simpl; [ring|]. rewrite IHn; ring. Qed.
Lemma Sum_one n : Sum n (fun _ => 1) = INR n.
Proof. induction n; [easy|]. rewrite S_INR; simpl Sum. rewrite IHn; ring. Qed.
Lemma Sum_swap n m f :
  Sum n (fun i => Sum m (fun j => f i j)) = Sum m (fun j => Sum n (fun i => f i j)).
Proof.
  induction n; simpl; [symmetry; apply Sum_zero|]. rewrite IHn. apply Sum_add.
Qed.
Definition ind (b : bool) : R := if b then 1 else 0.
Definition choice (b : bool) (u v : R) : R := if b then u else v.
Definition leR (a b : R) : bool := if Rle_dec a b then true else false.
Definition ltR (a b : R) : bool := if Rlt_dec a b then true else false.
Definition eqR (a b : R) : bool := if Req_EM_T a b then true else false.
Definition sgn (u : R) : R := choice (ltR 0 u) 1 (choice (ltR u 0) (-1) 0).
Definition erf (x : R) : R := 2 / sqrt PI * RInt (fun u => exp (- u ^ 2)) 0 x.
(* The largest of n entries, and where it stands first. *)
Fixpoint Largest (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S O => f O | S m => Rmax (Largest m f) (f m) end.
Fixpoint First (n : nat) (f : nat -> R) : nat :=
  match n with O => O | S m => if Rlt_dec (f (First m f)) (f m) then m else First m f end.
Lemma First_lt n f : (0 < n)%nat -> (First n f < n)%nat.
Proof.
  induction n as [|[|n] IH]; [lia| |]; intros; [simpl; destruct (Rlt_dec (f O) (f O)); lia|].
  change (First (S (S n)) f) with (if Rlt_dec (f (First (S n) f)) (f (S n)) then S n else First (S n) f).
  destruct (Rlt_dec _ _); [lia|]. specialize (IH ltac:(lia)); lia.
Qed.
Lemma Largest_at n f k : (k < n)%nat -> (forall i, (i < n)%nat -> f i <= f k) -> Largest n f = f k.
Proof.
  revert k; induction n as [|[|n] IH]; intros k H L; [lia| |].
  - simpl. replace k with O by lia. reflexivity.
  - change (Largest (S (S n)) f) with (Rmax (Largest (S n) f) (f (S n))).
    destruct (Nat.eq_dec k (S n)) as [->|].
    + apply Rmax_right. clear H. revert L. generalize (f (S n)) as m. intros m L.
      clear IH. assert (L' : forall i, (i < S n)%nat -> f i <= m) by (intros; apply L; lia). clear L.
      induction n as [|n IHn]; [simpl; apply L'; lia|].
      change (Largest (S (S n)) f) with (Rmax (Largest (S n) f) (f (S n))).
      apply Rmax_lub; [apply IHn; intros; apply L'; lia | apply L'; lia].
    + rewrite (IH k) by (try lia; intros; apply L; lia). apply Rmax_left, L; lia.
Qed.
Lemma Sum_ind n k : (k < n)%nat -> Sum n (fun i => ind (Nat.eqb k i)) = 1.
Proof.
  assert (Z : forall m, (m <= k)%nat -> Sum m (fun i => ind (Nat.eqb k i)) = 0).
  { induction m; simpl; intros; [easy|]. rewrite IHm by lia.
    rewrite (proj2 (Nat.eqb_neq k m)) by lia. simpl; ring. }
  induction n; simpl; intros; [lia|].
  destruct (Nat.eqb_spec k n); [subst; rewrite Z by lia; simpl; ring|]. rewrite IHn by lia; simpl; ring.
Qed.
(* An axis of n * m entries is two axes. *)
Lemma Sum_plus n m f : Sum (n + m) f = Sum n f + Sum m (fun j => f (n + j)%nat).
Proof. induction m; simpl; [rewrite Nat.add_0_r; ring|]. rewrite Nat.add_succ_r; simpl. rewrite IHm; ring. Qed.
Lemma Sum_flat n m f : Sum (n * m) f = Sum n (fun i => Sum m (fun j => f (i * m + j)%nat)).
Proof. induction n; [easy|]. simpl. rewrite Nat.add_comm, Sum_plus, IHn. easy. Qed.
Lemma place_div i j m : (j < m)%nat -> ((i * m + j) / m = i)%nat.
Proof. intros. rewrite Nat.div_add_l, Nat.div_small by lia. lia. Qed.
Lemma place_mod i j m : (j < m)%nat -> ((i * m + j) mod m = j)%nat.
Proof. intros. rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. lia. Qed.
Lemma place_whole i m : (0 < m)%nat -> (i / m * m + i mod m = i)%nat.
Proof. intros. rewrite (Nat.div_mod i m) at 3 by lia. lia. Qed.
Lemma div_lt i n m : (0 < m)%nat -> (i < n * m)%nat -> (i / m < n)%nat.
Proof. intros. apply Nat.div_lt_upper_bound; lia. Qed.
Lemma mod_lt i m : (0 < m)%nat -> (i mod m < m)%nat.
Proof. intros. apply Nat.mod_upper_bound; lia. Qed.
Lemma place_lt i j n m : (i < n)%nat -> (j < m)%nat -> (i * m + j < n * m)%nat.
Proof. nia. Qed.
Lemma choice_pos b u v : (b = true -> 0 < u) -> (b = false -> 0 < v) -> 0 < choice b u v.
Proof. destruct b; simpl; auto. Qed.
Lemma choice_nonneg b u v : (b = true -> 0 <= u) -> (b = false -> 0 <= v) -> 0 <= choice b u v.
Proof. destruct b; simpl; auto. Qed.
Lemma square_nonneg a : 0 <= a * a. Proof. pose proof (Rle_0_sqr a). easy. Qed.
Lemma ind_nonneg b : 0 <= ind b. Proof. destruct b; simpl; lra. Qed.
Lemma same_pos a b : 0 < a -> a = b -> 0 < b. Proof. intros ? <-; easy. Qed.
Lemma same_not a b : a <> 0 -> a = b -> b <> 0. Proof. intros ? <-; easy. Qed.
Lemma Sum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= Sum n f.
Proof.
  induction n; simpl; intros H; [lra|]. specialize (H n ltac:(lia)) as H'.
  assert (0 <= Sum n f) by auto. lra.
Qed.
Lemma Sum_pos n f : (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < Sum n f.
Proof.
  destruct n; [lia|]. simpl; intros _ H. specialize (H n ltac:(lia)) as H'.
  assert (0 <= Sum n f) by (apply Sum_nonneg; intros; apply Rlt_le; auto). lra.
Qed.

Lemma Sum_pick n k f : (k < n)%nat -> Sum n (fun i => ind (Nat.eqb k i) * f i) = f k.
Proof.
  intros. transitivity (f k * Sum n (fun i => ind (Nat.eqb k i))); [|rewrite Sum_ind by easy; ring].
  rewrite Sum_mul_l. apply Sum_ext; intros. destruct (Nat.eqb_spec k i); [subst; ring | simpl; ring].
Qed.

(* Derivatives of a value along a curve of its inputs. *)
Lemma D_eq f (t a b : R) : is_derive f t a -> a = b -> is_derive f t b.
Proof. intros; subst; easy. Qed.
Lemma D_const (k t : R) : is_derive (fun _ => k) t 0.
Proof. apply (is_derive_const (K := R_AbsRing) (V := R_NormedModule)). Qed.
Lemma D_add f g (t a b : R) :
  is_derive f t a -> is_derive g t b -> is_derive (fun t => f t + g t) t (a + b).
Proof. intros; apply (is_derive_plus (K := R_AbsRing) (V := R_NormedModule)); easy. Qed.
Lemma D_sub f g (t a b : R) :
  is_derive f t a -> is_derive g t b -> is_derive (fun t => f t - g t) t (a - b).
Proof. intros; apply (is_derive_minus (K := R_AbsRing) (V := R_NormedModule)); easy. Qed.
Lemma D_opp f (t a : R) : is_derive f t a -> is_derive (fun t => - f t) t (- a).
Proof. intros; apply (is_derive_opp (K := R_AbsRing) (V := R_NormedModule)); easy. Qed.
Lemma D_mul f g (t a b : R) :
  is_derive f t a -> is_derive g t b -> is_derive (fun t => f t * g t) t (a * g t + f t * b).
Proof. intros; apply (is_derive_mult (K := R_AbsRing)); auto; exact Rmult_comm. Qed.
Lemma D_comp f g (t a b : R) :
  is_derive f (g t) b -> is_derive g t a -> is_derive (fun t => f (g t)) t (b * a).
Proof.
  intros. eapply D_eq; [apply (is_derive_comp (K := R_AbsRing) f g); eassumption|].
  unfold scal; simpl; unfold mult; simpl; ring.
Qed.
Lemma D_inv f (t a : R) :
  f t <> 0 -> is_derive f t a -> is_derive (fun t => / f t) t (- a * (/ f t) ^ 2).
Proof. intros N H. eapply D_eq; [apply is_derive_inv; eassumption|]. now field. Qed.
Lemma D_div f g (t a b : R) : g t <> 0 -> is_derive f t a -> is_derive g t b ->
  is_derive (fun t => f t / g t) t (a / g t - f t * b * (/ g t) ^ 2).
Proof.
  intros. unfold Rdiv. eapply D_eq; [apply D_mul; [eassumption | apply D_inv; eassumption]|]. cbv beta; ring.
Qed.
Lemma D_div_const f (t a k : R) : is_derive f t a -> is_derive (fun t => f t / k) t (a / k).
Proof. intros. unfold Rdiv. eapply D_eq; [apply D_mul; [eassumption | apply D_const]|]. cbv beta; unfold Rdiv; ring. Qed.
Lemma D_pow f (t a : R) n :
  is_derive f t a -> is_derive (fun t => f t ^ n) t (INR n * f t ^ pred n * a).
Proof. intros. eapply D_eq; [apply is_derive_pow; eassumption|]. ring. Qed.
Lemma D_exp f (t a : R) : is_derive f t a -> is_derive (fun t => exp (f t)) t (exp (f t) * a).
Proof. apply (D_comp exp), is_derive_Reals, derivable_pt_lim_exp. Qed.
Lemma D_ln f (t a : R) : 0 < f t -> is_derive f t a -> is_derive (fun t => ln (f t)) t (/ f t * a).
Proof. intros. apply (D_comp ln); [apply is_derive_Reals, derivable_pt_lim_ln|]; easy. Qed.
Lemma D_sqrt f (t a : R) :
  0 < f t -> is_derive f t a -> is_derive (fun t => sqrt (f t)) t (/ (2 * sqrt (f t)) * a).
Proof. intros. apply (D_comp sqrt); [apply is_derive_Reals, derivable_pt_lim_sqrt|]; easy. Qed.
Lemma D_rsqrt f (t a : R) : 0 < f t -> is_derive f t a ->
  is_derive (fun t => / sqrt (f t)) t (- (1 / 2) * (/ sqrt (f t)) ^ 3 * a).
Proof.
  intros P H. assert (0 < sqrt (f t)) by now apply sqrt_lt_R0.
  eapply D_eq; [apply D_inv; [lra | apply D_sqrt; eassumption]|]. cbv beta; field; lra.
Qed.
Lemma D_Sum n (f : R -> nat -> R) (f' : nat -> R) (t : R) :
  (forall i, (i < n)%nat -> is_derive (fun t => f t i) t (f' i)) ->
  is_derive (fun t => Sum n (fun i => f t i)) t (Sum n f').
Proof.
  induction n; simpl; intros H; [apply D_const|].
  apply (D_add (fun t => Sum n (fun i => f t i)) (fun t => f t n)); auto.
Qed.
Lemma D_Rpower f (t a k : R) : 0 < f t -> is_derive f t a ->
  is_derive (fun t => Rpower (f t) k) t (k * Rpower (f t) (k - 1) * a).
Proof.
  intros P H. unfold Rpower. eapply D_eq; [apply D_exp, (D_mul (fun _ => k)); [apply D_const | apply D_ln; eassumption]|].
  cbv beta. replace ((k - 1) * ln (f t)) with (k * ln (f t) + - ln (f t)) by ring.
  rewrite exp_plus, exp_Ropp, exp_ln by easy. field; lra.
Qed.
Lemma D_cosh f (t a : R) : is_derive f t a -> is_derive (fun t => cosh (f t)) t (sinh (f t) * a).
Proof. apply (D_comp cosh), is_derive_Reals, derivable_pt_lim_cosh. Qed.
Lemma D_sinh f (t a : R) : is_derive f t a -> is_derive (fun t => sinh (f t)) t (cosh (f t) * a).
Proof. apply (D_comp sinh), is_derive_Reals, derivable_pt_lim_sinh. Qed.
Lemma cosh_pos x : 0 < cosh x.
Proof. unfold cosh. pose proof (exp_pos x). pose proof (exp_pos (- x)). lra. Qed.
Lemma D_tanh f (t a : R) : is_derive f t a -> is_derive (fun t => tanh (f t)) t ((1 - tanh (f t) ^ 2) * a).
Proof.
  intros H. pose proof (cosh_pos (f t)). unfold tanh.
  eapply D_eq; [apply (D_div (fun t => sinh (f t)) (fun t => cosh (f t))); [lra | apply D_sinh, H | apply D_cosh, H]|].
  cbv beta. field; lra.
Qed.
Lemma D_erf f (t a : R) : is_derive f t a -> is_derive (fun t => erf (f t)) t (2 / sqrt PI * exp (- f t ^ 2) * a).
Proof.
  apply (D_comp erf). unfold erf. eapply D_eq; [apply (D_mul (fun _ => 2 / sqrt PI)); [apply D_const|]|].
  - apply (is_derive_RInt (V := R_NormedModule) (fun u => exp (- u ^ 2)) _ 0 (f t)).
    + apply filter_forall. intros b. apply (RInt_correct (V := R_CompleteNormedModule)), (ex_RInt_continuous (V := R_CompleteNormedModule)).
      intros z _. apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)). auto_derive; easy.
    + apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)). auto_derive; easy.
  - cbv beta. ring.
Qed.
(* Where a condition does not change its truth. *)
Definition steady (b : R -> bool) (t : R) := locally t (fun s => b s = b t).
Lemma apart (f g : R -> R) (t a b : R) : is_derive f t a -> is_derive g t b -> f t < g t -> locally t (fun s => f s < g s).
Proof.
  intros F G L.
  assert (C : forall (h : R -> R) (c : R), is_derive h t c -> continuous h t).
  { intros h c H. apply (ex_derive_continuous (K := R_AbsRing) (V := R_NormedModule)). now exists c. }
  pose proof (C _ _ F) as Cf. pose proof (C _ _ G) as Cg.
  set (m := (f t + g t) / 2).
  assert (A : locally t (fun s => f s < m)) by (apply (Cf (fun y => y < m)), open_lt; unfold m; lra).
  assert (B : locally t (fun s => m < g s)) by (apply (Cg (fun y => m < y)), open_gt; unfold m; lra).
  generalize (filter_and _ _ A B). apply filter_imp. intros s [? ?]; lra.
Qed.
Lemma steady_of (b : R -> R -> bool) (f g : R -> R) (t u v : R) :
  (forall x y z w, x < y -> z < w -> b x y = b z w) -> (forall x y z w, y < x -> w < z -> b x y = b z w) ->
  is_derive f t u -> is_derive g t v -> f t <> g t -> steady (fun s => b (f s) (g s)) t.
Proof.
  intros L G F H N. destruct (Rtotal_order (f t) (g t)) as [?|[?|?]]; [|easy|].
  - generalize (apart _ _ _ _ _ F H ltac:(eassumption)). unfold steady. apply filter_imp. auto.
  - generalize (apart _ _ _ _ _ H F ltac:(eassumption)). unfold steady. apply filter_imp. auto.
Qed.
Ltac by_cases := intros; unfold leR, ltR, eqR; repeat destruct Rle_dec; repeat destruct Rlt_dec; repeat destruct Req_EM_T; (easy || lra).
Lemma steady_leR f g (t u v : R) : is_derive f t u -> is_derive g t v -> f t <> g t -> steady (fun s => leR (f s) (g s)) t.
Proof. apply steady_of; by_cases. Qed.
Lemma steady_ltR f g (t u v : R) : is_derive f t u -> is_derive g t v -> f t <> g t -> steady (fun s => ltR (f s) (g s)) t.
Proof. apply steady_of; by_cases. Qed.
Lemma steady_eqR f g (t u v : R) : is_derive f t u -> is_derive g t v -> f t <> g t -> steady (fun s => eqR (f s) (g s)) t.
Proof. apply steady_of; by_cases. Qed.
Lemma steady_const k t : steady (fun _ => k) t.
Proof. unfold steady. now apply filter_forall. Qed.
Lemma steady_negb b t : steady b t -> steady (fun s => negb (b s)) t.
Proof. unfold steady. apply filter_imp. now intros ? ->. Qed.
Lemma steady_andb b c t : steady b t -> steady c t -> steady (fun s => andb (b s) (c s)) t.
Proof. intros B C. generalize (filter_and _ _ B C). unfold steady. apply filter_imp. now intros ? [-> ->]. Qed.
Lemma steady_orb b c t : steady b t -> steady c t -> steady (fun s => orb (b s) (c s)) t.
Proof. intros B C. generalize (filter_and _ _ B C). unfold steady. apply filter_imp. now intros ? [-> ->]. Qed.
Lemma leR_true a b : leR a b = true -> a <= b. Proof. unfold leR; destruct Rle_dec; easy. Qed.
Lemma leR_false a b : leR a b = false -> b < a. Proof. unfold leR; destruct Rle_dec; [easy|lra]. Qed.
Lemma ltR_true a b : ltR a b = true -> a < b. Proof. unfold ltR; destruct Rlt_dec; easy. Qed.
Lemma ltR_false a b : ltR a b = false -> b <= a. Proof. unfold ltR; destruct Rlt_dec; [easy|lra]. Qed.
Lemma eqR_true a b : eqR a b = true -> a = b. Proof. unfold eqR; destruct Req_EM_T; easy. Qed.
Lemma eqR_false a b : eqR a b = false -> a <> b. Proof. unfold eqR; destruct Req_EM_T; easy. Qed.
Lemma D_choice b (f g : R -> R) (t u v : R) : steady b t ->
  (b t = true -> is_derive f t u) -> (b t = false -> is_derive g t v) ->
  is_derive (fun s => choice (b s) (f s) (g s)) t (choice (b t) u v).
Proof.
  intros B F G. unfold steady in B. destruct (b t) eqn:E.
  - apply (is_derive_ext_loc f); [|now apply F]. generalize B. apply filter_imp. now intros ? ->.
  - apply (is_derive_ext_loc g); [|now apply G]. generalize B. apply filter_imp. now intros ? ->.
Qed.
Lemma D_Rabs f (t a : R) : f t <> 0 -> is_derive f t a -> is_derive (fun t => Rabs (f t)) t (sgn (f t) * a).
Proof.
  intros N H. apply (is_derive_ext (fun s => choice (leR 0 (f s)) (f s) (- f s))).
  { intros s. unfold choice, leR, Rabs. destruct Rle_dec, Rcase_abs; lra. }
  eapply D_eq; [apply (D_choice (fun s => leR 0 (f s)) f (fun s => - f s) t a (- a)) |].
  - apply (steady_leR (fun _ => 0) f t 0 a); [apply D_const | exact H | congruence].
  - intros _; exact H.
  - intros _; apply D_opp, H.
  - unfold sgn, choice, leR, ltR. destruct Rle_dec, Rlt_dec; try destruct Rlt_dec; lra.
Qed.
Lemma D_sgn f (t a : R) : f t <> 0 -> is_derive f t a -> is_derive (fun t => sgn (f t)) t 0.
Proof.
  intros N H. unfold sgn. eapply D_eq; [apply (D_choice (fun s => ltR 0 (f s)) (fun _ => 1) (fun s => choice (ltR (f s) 0) (-1) 0) t 0 (choice (ltR (f t) 0) 0 0)) |].
  - apply (steady_ltR (fun _ => 0) f t 0 a); [apply D_const | exact H | congruence].
  - intros _; apply D_const.
  - intros _. apply (D_choice (fun s => ltR (f s) 0) (fun _ => -1) (fun _ => 0)); [|intros _; apply D_const|intros _; apply D_const].
    apply (steady_ltR f (fun _ => 0) t a 0); [exact H | apply D_const | easy].
  - unfold choice. destruct (ltR 0 (f t)), (ltR (f t) 0); easy.
Qed.
Lemma all_locally (t : R) n (P : nat -> R -> Prop) : (forall i, (i < n)%nat -> locally t (P i)) ->
  locally t (fun s => forall i, (i < n)%nat -> P i s).
Proof.
  induction n; intros H; [apply filter_forall; lia|].
  assert (Q : forall i, (i < n)%nat -> locally t (P i)) by auto.
  generalize (filter_and _ _ (IHn Q) (H n (Nat.lt_succ_diag_r n))). apply filter_imp.
  intros s [A B] i L. destruct (Nat.eq_dec i n) as [->|]; [easy | apply A; lia].
Qed.
Lemma D_Largest n (f : R -> nat -> R) (f' : nat -> R) (t : R) : (0 < n)%nat ->
  (forall i, (i < n)%nat -> is_derive (fun s => f s i) t (f' i)) ->
  (forall i, (i < n)%nat -> i <> First n (f t) -> f t i < Largest n (f t)) ->
  is_derive (fun s => Largest n (f s)) t (Sum n (fun i => ind (Nat.eqb (First n (f t)) i) * f' i)).
Proof.
  intros P D L. rewrite Sum_pick by now apply First_lt. revert P D L.
  intros P D L. set (k := First n (f t)) in *. assert (K : (k < n)%nat) by now apply First_lt.
  assert (E : Largest n (f t) = f t k).
  { destruct (Rle_dec (Largest n (f t)) (f t k)) as [Q|Q].
    - apply Largest_at; [easy|]. intros i I. destruct (Nat.eq_dec i k) as [->|]; [lra|]. specialize (L i I n0). lra.
    - exfalso. apply Q. clear - L K. revert k L K. intros k L K.
      destruct n as [|n]; [lia|].
      assert (A : forall m g, exists j, (j < S m)%nat /\ Largest (S m) g = g j).
      { induction m as [|m IH]; intros g; [exists O; split; [lia | easy]|].
        change (Largest (S (S m)) g) with (Rmax (Largest (S m) g) (g (S m))).
        destruct (IH g) as [j [J ->]]. unfold Rmax. destruct Rle_dec; [exists (S m) | exists j]; split; lia || easy. }
      destruct (A n (f t)) as [j [J Ej]]. destruct (Nat.eq_dec j k) as [->|N]; [lra|]. specialize (L j J N). lra. }
  apply (is_derive_ext_loc (fun s => f s k)); [|now apply D].
  assert (B : locally t (fun s => forall i, (i < n)%nat -> i <> k -> f s i < f s k)).
  { apply all_locally. intros i I. destruct (Nat.eq_dec i k) as [->|N]; [apply filter_forall; easy|].
    specialize (L i I N). rewrite E in L.
    generalize (apart _ _ _ _ _ (D i I) (D k K) L). apply filter_imp. auto. }
  generalize B. apply filter_imp. intros s H. symmetry. apply Largest_at; [easy|].
  intros i I. destruct (Nat.eq_dec i k) as [->|N]; [lra|]. apply Rlt_le; auto.
Qed.

Global Opaque is_derive.

(* ---- normal forms: sums of products 1 | f * m, each sum with what varies along it ---- *)
Lemma n_eq (a b A B : R) : a = A -> b = B -> A = B -> a = b. Proof. intros; congruence. Qed.
Lemma n_add a b A B r : a = A -> b = B -> A + B = r -> a + b = r. Proof. intros; congruence. Qed.
Lemma n_sub a b r : a + - (1) * b = r -> a - b = r. Proof. intros <-; ring. Qed.
Lemma n_opp a r : - (1) * a = r -> - a = r. Proof. intros <-; ring. Qed.
Lemma n_mul a b A B r : a = A -> b = B -> A * B = r -> a * b = r. Proof. intros; congruence. Qed.
Lemma n_flat n m f r : Sum n (fun i => Sum m (fun j => f (i * m + j)%nat)) = r -> Sum (n * m) f = r.
Proof. intros <-. apply Sum_flat. Qed.
Lemma n_size n m r : INR n * INR m = r -> INR (n * m) = r. Proof. intros <-. apply mult_INR. Qed.
Lemma n_atom a : a = a * 1 + 0. Proof. ring. Qed.
Lemma n_one : 1 = 1 + 0. Proof. ring. Qed.
Lemma n_minus : -1 = - (1) * 1 + 0. Proof. ring. Qed.
Lemma n_pow2 a r : a * a = r -> a ^ 2 = r. Proof. intros <-; ring. Qed.
Lemma n_pow3 a r : a * (a * a) = r -> a ^ 3 = r. Proof. intros <-; ring. Qed.
Lemma n_pow4 a r : a * (a * (a * a)) = r -> a ^ 4 = r. Proof. intros <-; ring. Qed.
Lemma n_andb b c r : ind b * ind c = r -> ind (andb b c) = r. Proof. intros <-; destruct b, c; simpl; ring. Qed.
Lemma n_orb b c r : ind b + (1 - ind b) * ind c = r -> ind (orb b c) = r. Proof. intros <-; destruct b, c; simpl; ring. Qed.
Lemma n_ltR a b r : ind (negb (leR b a)) = r -> ind (ltR a b) = r.
Proof. intros <-; unfold ltR, leR; destruct Rlt_dec, Rle_dec; simpl; lra. Qed.
Lemma n_not_ltR a b r : ind (leR b a) = r -> ind (negb (ltR a b)) = r.
Proof. intros <-; unfold ltR, leR; destruct Rlt_dec, Rle_dec; simpl; lra. Qed.
Lemma n_negb b r : ind b = r -> ind (negb (negb b)) = r. Proof. intros <-; now destruct b. Qed.
Lemma n_root a A : a = A -> sqrt a = sqrt A * 1 + 0. Proof. intros ->; ring. Qed.
Lemma n_choice b u v r : ind b * u + (1 + - (1) * ind b) * v = r -> choice b u v = r.
Proof. intros <-; destruct b; simpl; ring. Qed.
Lemma n_sum n f g r : (forall i, (i < n)%nat -> f i = g i) -> Sum n g = r -> Sum n f = r.
Proof. intros H <-; now apply Sum_ext. Qed.
Lemma app_nil B : 0 + B = B. Proof. ring. Qed.
Lemma app_cons m A B r : A + B = r -> m + A + B = m + r. Proof. intros <-; ring. Qed.
Lemma mul_nil B : 0 * B = 0. Proof. ring. Qed.
Lemma mul_cons m A B p q r : m * B = p -> A * B = q -> p + q = r -> (m + A) * B = r.
Proof. intros <- <- <-; ring. Qed.
Lemma by_nil m : m * 0 = 0. Proof. ring. Qed.
Lemma by_cons m k B p q : m * k = p -> m * B = q -> m * (k + B) = p + q. Proof. intros <- <-; ring. Qed.
Lemma cat_nil k : 1 * k = k. Proof. ring. Qed.
Lemma cat_cons f m k r s : m * k = r -> f * r = s -> f * m * k = s. Proof. intros <- <-; ring. Qed.
Lemma put_below g r m : r = g * m -> g <> 0 -> / g * r = m. Proof. intros -> ?. now field. Qed.
Lemma put_above f r m : r = / f * m -> f <> 0 -> f * r = m. Proof. intros -> ?. now field. Qed.
Lemma take_cons g r f m : r = f * m -> g * r = f * (g * m). Proof. intros ->. ring. Qed.
Lemma n_inv a A r : a = A -> / A = r -> / a = r. Proof. intros; congruence. Qed.
Lemma put_root u r m : r = sqrt u * m -> 0 <= u -> sqrt u * r = u * m.
Proof. intros -> ?. rewrite <- Rmult_assoc, sqrt_sqrt by easy. reflexivity. Qed.
Lemma inv_one m r : / m = r -> / (m + 0) = r + 0. Proof. intros <-. now rewrite !Rplus_0_r. Qed.
Lemma inv_nil : / 1 = 1. Proof. apply Rinv_1. Qed.
Lemma inv_cons f m r s : / m = r -> / f * r = s -> / (f * m) = s. Proof. intros <- <-. apply Rinv_mult. Qed.
Lemma inv_inv f m r s : / m = r -> f * r = s -> / (/ f * m) = s. Proof. intros <- <-. now rewrite Rinv_mult, Rinv_inv. Qed.
Lemma n_exp a A r : a = A -> exp A = r -> exp a = r + 0. Proof. intros -> <-. ring. Qed.
Lemma exp_nil : exp 0 = 1. Proof. apply exp_0. Qed.
Lemma exp_cons m A p q r : exp m = p -> exp A = q -> p * q = r -> exp (m + A) = r. Proof. intros <- <- <-. apply exp_plus. Qed.
Lemma exp_minus m p r : exp m = p -> / p = r -> exp (- (1) * m) = r.
Proof. intros <- <-. rewrite <- exp_Ropp. f_equal; ring. Qed.
Lemma exp_log u : 0 < u -> exp (ln u * 1) = u * 1. Proof. intros. rewrite !Rmult_1_r. now apply exp_ln. Qed.
Lemma n_Rpower u k K r : k = K -> Rpower u K = r -> Rpower u k = r + 0. Proof. intros -> <-. ring. Qed.
Lemma Rpower_nil u : Rpower u 0 = 1. Proof. unfold Rpower. rewrite Rmult_0_l. apply exp_0. Qed.
Lemma Rpower_cons u m A p q r : Rpower u m = p -> Rpower u A = q -> p * q = r -> Rpower u (m + A) = r.
Proof. intros <- <- <-. apply Rpower_plus. Qed.
Lemma Rpower_one u m : Rpower u m = Rpower u m * 1. Proof. ring. Qed.
Lemma exp_one m : exp m = exp m * 1. Proof. ring. Qed.
Lemma split_nil n : Sum n (fun _ => 0) = 0. Proof. apply Sum_zero. Qed.
Lemma split_cons n m P p q : Sum n (fun i => 1 * m i) = p -> Sum n P = q -> Sum n (fun i => m i + P i) = p + q.
Proof. intros <- <-. rewrite <- Sum_add. f_equal. apply Sum_ext; intros; ring. Qed.
Lemma pull_out n A c m r : Sum n (fun i => A i * m i) = r -> Sum n (fun i => A i * (c * m i)) = c * r.
Proof. intros <-. rewrite Sum_mul_l. apply Sum_ext; intros; ring. Qed.
Lemma pull_in n A f m r : Sum n (fun i => A i * f i * m i) = r -> Sum n (fun i => A i * (f i * m i)) = r.
Proof. intros <-. apply Sum_ext; intros; ring. Qed.
Lemma pull_done n A B : (forall i, (i < n)%nat -> A i = B i) -> Sum n (fun i => A i * 1) = Sum n B * 1.
Proof. intros H; rewrite Rmult_1_r; apply Sum_ext; intros; rewrite H; [ring | easy]. Qed.
Lemma pull_one n : Sum n (fun i => 1 * 1) = INR n * 1.
Proof. transitivity (Sum n (fun _ => 1)); [apply Sum_ext; intros; ring | rewrite Sum_one; ring]. Qed.
Lemma pull_delta n k : (k < n)%nat -> Sum n (fun i => 1 * ind (Nat.eqb k i) * 1) = 1.
Proof. intros. transitivity (Sum n (fun i => ind (Nat.eqb k i))); [apply Sum_ext; intros; ring | now apply Sum_ind]. Qed.
Lemma fuse_l a k q (h : nat -> R) : (forall j, (j < k)%nat -> a * q j = h j) -> a * Sum k q = Sum k h.
Proof. intros. rewrite Sum_mul_l. now apply Sum_ext. Qed.
Lemma fuse_r a k q (h : nat -> R) : (forall j, (j < k)%nat -> q j * a = h j) -> Sum k q * a = Sum k h.
Proof. intros. rewrite Sum_mul_r. now apply Sum_ext. Qed.
Lemma fuse_one a : 1 * a = a. Proof. ring. Qed.
Lemma Sum_bring n m f (g : nat -> nat -> R) : (forall i, (i < n)%nat -> f i = Sum m (fun j => g i j)) ->
  Sum n f = Sum m (fun j => Sum n (fun i => g i j)).
Proof. intros. rewrite <- Sum_swap. now apply Sum_ext. Qed.

Ltac told := repeat match goal with
  | H : negb ?b = true |- _ => apply (f_equal negb) in H; rewrite Bool.negb_involutive in H; simpl in H
  | H : negb ?b = false |- _ => apply (f_equal negb) in H; rewrite Bool.negb_involutive in H; simpl in H
  | H : leR _ _ = true |- _ => pose proof (leR_true _ _ H); revert H
  | H : leR _ _ = false |- _ => pose proof (leR_false _ _ H); revert H
  | H : ltR _ _ = true |- _ => pose proof (ltR_true _ _ H); revert H
  | H : ltR _ _ = false |- _ => pose proof (ltR_false _ _ H); revert H
  | H : eqR _ _ = true |- _ => pose proof (eqR_true _ _ H); revert H
  | H : eqR _ _ = false |- _ => pose proof (eqR_false _ _ H); revert H end; intros.
Create HintDb side.
Ltac some := first [assumption | lia | apply Nat.mul_pos_pos; some | solve [auto with side]].
Ltac known_sums := fail.
Ltac within := first [assumption | apply place_lt; within | apply div_lt; [some | within] | apply mod_lt; some].
Ltac assumed := match goal with R : forall _, _ |- 0 < _ => solve [eapply R; within] end.
Ltac given := match goal with
  | R : _ |- 0 < ?u => refine (same_pos _ u _ _); [eapply R; within | solve [known_sums]]
  | R : _ |- ?u <> 0 => refine (same_not _ u _ _); [eapply R; within | solve [known_sums]] end.
Ltac pos := first [assumption | lra | solve [auto 3 with side] | apply exp_pos | apply cosh_pos | apply choice_pos; intros; told; pos | apply Rinv_0_lt_compat; pos
  | apply sqrt_lt_R0; pos | apply Rmult_lt_0_compat; pos | apply pow_lt; pos
  | apply Sum_pos; [some | intros; pos] | rewrite mult_INR; pos | apply Rplus_lt_0_compat; pos
  | apply Rplus_lt_le_0_compat; [pos | nonneg] | apply Rplus_le_lt_0_compat; [nonneg | pos]]
with nonneg := first [assumption | lra | solve [auto 3 with side] | apply pow2_ge_0 | apply square_nonneg | apply ind_nonneg | apply choice_nonneg; intros; told; nonneg | apply Sum_nonneg; intros; nonneg
  | apply Rmult_le_pos; nonneg | apply Rplus_le_le_0_compat; nonneg | apply Rlt_le; pos].
Ltac signs := unfold Rdiv;
  lazymatch goal with |- 0 < _ => pos | |- 0 <= _ => nonneg | |- _ <> 0 => apply Rgt_not_eq; unfold Rgt; pos end.
Ltac side := repeat split; first [solve [auto 3 with side] | lra | solve [signs] | apply not_eq_sym; solve [auto 3 with side]].

Ltac app := lazymatch goal with
  | |- 0 + _ = _ => apply app_nil
  | |- _ + _ + _ = _ => apply app_cons; app end.
(* A factor put before a product; with its inverse it cancels, where it is not 0. *)
Ltac take f := lazymatch goal with
  | |- f * _ = _ => reflexivity
  | |- _ * _ = _ => apply take_cons; take f end.
Ltac put := lazymatch goal with
  | |- / ?f * ?r = _ => first [lazymatch r with context [f] => apply put_below; [take f | side] end | reflexivity]
  | |- sqrt ?u * ?r = _ => first [
    lazymatch r with context [sqrt u] => apply put_root; [take (sqrt u) | first [lra | apply Rlt_le; side | nonneg]] end
    | lazymatch r with context [/ sqrt u] => apply put_above; [take (/ sqrt u) | side] end | reflexivity]
  | |- ?f * ?r = _ => first [lazymatch r with context [/ f] => apply put_above; [take (/ f) | side] end | reflexivity] end.
Ltac cat := lazymatch goal with
  | |- 1 * _ = _ => apply cat_nil
  | |- _ * _ * _ = _ => eapply cat_cons; [cat | put] end.
Ltac by_poly := lazymatch goal with
  | |- _ * 0 = _ => apply by_nil
  | |- _ * (_ + _) = _ => eapply by_cons; [cat | by_poly] end.
Ltac polys := lazymatch goal with
  | |- 0 * _ = _ => apply mul_nil
  | |- (_ + _) * _ = _ => eapply mul_cons; [by_poly | polys | app] end.
Ltac fuse := lazymatch goal with
  | |- ?a * ?b = _ => etransitivity; [apply f_equal2; [fuse | fuse] | fused]
  | |- _ => reflexivity end
with fused := lazymatch goal with
  | |- 1 * _ = _ => apply fuse_one
  | |- _ * Sum _ _ = _ => apply fuse_l; intros; cbv beta; fused
  | |- Sum _ _ * _ = _ => apply fuse_r; intros; cbv beta; fused
  | |- _ => reflexivity end.
Ltac pull := lazymatch goal with
  | |- Sum _ (fun i => @?A i * (@?f i * @?m i)) = _ =>
    lazymatch f with (fun _ => ?c) => apply (pull_out _ A c m) | _ => apply (pull_in _ A f m) end; cbv beta; pull
  | |- Sum _ (fun i => 1 * 1) = _ => apply pull_one
  | |- Sum _ (fun i => 1 * ind (Nat.eqb ?k i) * 1) = _ =>
    first [apply pull_delta; solve [auto 4 with side] | apply pull_done; intros; cbv beta; fuse]
  | |- Sum _ (fun i => @?A i * 1) = _ => apply (pull_done _ A); intros; cbv beta; fuse end.
Ltac split_sum := lazymatch goal with
  | |- Sum _ (fun i => 0) = _ => apply split_nil
  | |- Sum _ (fun i => @?m i + @?P i) = _ => apply (split_cons _ m P); [pull | split_sum] end.
Ltac inverse := lazymatch goal with
  | |- / 1 = _ => apply inv_nil
  | |- / (/ _ * _) = _ => eapply inv_inv; [inverse | put]
  | |- / (_ * _) = _ => eapply inv_cons; [inverse | put] end.
Ltac power := lazymatch goal with
  | |- exp 0 = _ => apply exp_nil
  | |- exp (_ + _) = _ => eapply exp_cons; [power | power | cat]
  | |- exp (- (1) * _) = _ => eapply exp_minus; [power | inverse]
  | |- exp (ln _ * 1) = _ => first [apply exp_log; solve [side] | apply exp_one]
  | |- _ => apply exp_one end.
Ltac Rpowers := lazymatch goal with
  | |- Rpower _ 0 = _ => apply Rpower_nil
  | |- Rpower _ (_ + _) = _ => eapply Rpower_cons; [Rpowers | Rpowers | cat]
  | |- _ => apply Rpower_one end.
(* Indices of an axis of parts, and of its parts. *)
Ltac places := repeat match goal with
  | |- context [((?i * ?m + ?j) / ?m)%nat] => rewrite (place_div i j m) by assumption
  | |- context [((?i * ?m + ?j) mod ?m)%nat] => rewrite (place_mod i j m) by assumption
  | |- context [(?i / ?m * ?m + ?i mod ?m)%nat] => rewrite (place_whole i m) by some
  end.
Ltac parts := repeat match goal with H : (?i < ?n * ?m)%nat |- _ =>
  lazymatch goal with _ : (i / m < n)%nat |- _ => fail | _ =>
  pose proof (div_lt i n m ltac:(some) H); pose proof (mod_lt i m ltac:(some)) end end.
(* What a certificate has proved equal before. *)
Ltac settled := fail.
Ltac norm := cbv beta; lazymatch goal with
  | |- Sum (_ * _) _ = _ => apply n_flat; norm
  | |- INR (_ * _) = _ => apply n_size; norm
  | |- 0 = _ => reflexivity
  | |- 1 = _ => apply n_one
  | |- -1 = _ => apply n_minus
  | |- _ + _ = _ => eapply n_add; [norm | norm | app]
  | |- _ - _ = _ => apply n_sub; norm
  | |- - (1) = _ => apply n_atom
  | |- - _ = _ => apply n_opp; norm
  | |- _ / _ = _ => unfold Rdiv at 1; norm
  | |- _ * _ = _ => eapply n_mul; [norm | norm | polys]
  | |- _ ^ 1 = _ => rewrite pow_1; norm
  | |- _ ^ 2 = _ => apply n_pow2; norm
  | |- _ ^ 3 = _ => apply n_pow3; norm
  | |- _ ^ 4 = _ => apply n_pow4; norm
  | |- ind (negb (negb _)) = _ => apply n_negb; norm
  | |- ind (negb (ltR _ _)) = _ => apply n_not_ltR; norm
  | |- ind (andb _ _) = _ => apply n_andb; norm
  | |- ind (orb _ _) = _ => apply n_orb; norm
  | |- ind (ltR _ _) = _ => apply n_ltR; norm
  | |- sqrt (_ + _) = _ => apply n_root; norm
  | |- choice _ _ _ = _ => apply n_choice; norm
  | |- Sum _ _ = _ => eapply n_sum; [intros; norm | split_sum]
  | |- / _ = _ => eapply n_inv; [norm | lazymatch goal with
    | |- / (_ + 0) = _ => apply inv_one; inverse | |- _ => apply n_atom end]
  | |- exp _ = _ => eapply n_exp; [norm | power]
  | |- Rpower _ _ = _ => eapply n_Rpower; [norm | Rpowers]
  | |- _ => try settled; places; apply n_atom end.
(* Products that differ in order; sums of them in another order of the sums. *)
Lemma root_square u : 0 <= u -> sqrt u * sqrt u = u. Proof. apply sqrt_sqrt. Qed.
(* A root is a number r > 0, and what stands under it r ^ 2. *)
Ltac roots := match goal with |- context [sqrt ?u] =>
  let P := fresh in let H := fresh in let r := fresh in
  assert (P : 0 < sqrt u) by (apply sqrt_lt_R0; first [solve [side] | given]);
  assert (H : u = sqrt u ^ 2) by (symmetry; apply pow2_sqrt; apply Rlt_le; first [solve [side] | given]);
  revert P H; generalize (sqrt u); intros r P H; try rewrite !H; clear H end.
(* Arguments that are equal are written in one way. *)
Ltac alike a b := tryif constr_eq a b then fail else
  (let H := fresh in assert (H : a = b) by first [ring | lra | solve [field; side]]; rewrite H; clear H).
Ltac arguments := match goal with
  | |- context [Rabs ?a] => match goal with |- context [Rabs ?b] => first [alike a b
    | alike a (- b); rewrite (Rabs_Ropp b)] end
  | |- context [exp ?a] => match goal with |- context [exp ?b] => alike a b end
  | |- context [ln ?a] => match goal with |- context [ln ?b] => alike a b end
  | |- context [sgn ?a] => match goal with |- context [sgn ?b] => alike a b end
  | |- context [tanh ?a] => match goal with |- context [tanh ?b] => alike a b end
  | |- context [erf ?a] => match goal with |- context [erf ?b] => alike a b end
  | |- context [Rpower ?a _] => match goal with |- context [Rpower ?b _] => alike a b end
  | |- context [Rpower _ ?a] => match goal with |- context [Rpower _ ?b] => alike a b end
  | |- context [leR ?a ?c] => match goal with |- context [leR ?b ?d] => first [alike a b | alike c d] end
  end.
Ltac reads := match goal with |- context [Z.eqb ?a ?b] => match goal with |- context [Z.eqb ?c ?d] =>
  tryif (constr_eq a c; constr_eq b d) then fail else
  (let H := fresh in assert (H : Z.eqb a b = Z.eqb c d) by (apply Bool.eq_true_iff_eq; rewrite !Z.eqb_eq; lia);
   rewrite H; clear H) end end.
Ltac case_of b := lazymatch b with
  | negb ?c => case_of c | andb ?c _ => case_of c | orb ?c _ => case_of c
  | _ => let E := fresh in destruct b eqn:E; cbn [ind negb andb orb]; told; subst end.
Ltac cases := match goal with |- context [ind ?b] => case_of b end.
Ltac plain := first [reflexivity | ring | solve [field; side]].
Ltac entry := first [reflexivity | ring | reads; entry | cases; entry].
Ltac leaf := first [plain | reads; leaf | arguments; leaf | cases; leaf | roots; leaf | lra].
Ltac bring d := lazymatch d with O => reflexivity | S ?d => eapply Sum_bring; intros; cbv beta; bring d end.
Ltac perm := lazymatch goal with
  | |- Sum ?n ?f = Sum ?m ?g => let h := open_constr:(_ : nat -> R) in
    first [brought m h 0%nat | brought m h 1%nat | brought m h 2%nat | brought m h 3%nat]
  | |- _ => entry end
with brought m h d := apply (eq_trans (y := Sum m h)); [bring d | apply Sum_ext; intros; cbv beta; perm].
Ltac matched := repeat match goal with |- context [Sum ?n ?f] => match goal with |- context [Sum ?m ?g] =>
  tryif constr_eq f g then fail else
  (let H := fresh in assert (H : Sum n f = Sum m g) by perm; rewrite H; clear H) end end.
Ltac sums := parts; told; eapply n_eq; [norm | norm |]; matched; leaf.

(* The derivative of an expression, operation by operation; those of names are in the context. *)
Ltac deriv := cbv beta; lazymatch goal with
  | |- is_derive (fun _ => ?k) _ _ => apply D_const
  | |- is_derive (fun t => @?f t + @?g t) _ _ => apply (D_add f g); deriv
  | |- is_derive (fun t => @?f t - @?g t) _ _ => apply (D_sub f g); deriv
  | |- is_derive (fun t => - @?f t) _ _ => apply (D_opp f); deriv
  | |- is_derive (fun t => @?f t * @?g t) _ _ => apply (D_mul f g); deriv
  | |- is_derive (fun t => @?f t / @?g t) _ _ => lazymatch g with
    | (fun _ => ?k) => apply (D_div_const f); deriv
    | _ => apply (D_div f g); [side | deriv | deriv] end
  | |- is_derive (fun t => @?f t ^ ?n) _ _ => apply (D_pow f); deriv
  | |- is_derive (fun t => exp (@?f t)) _ _ => apply (D_exp f); deriv
  | |- is_derive (fun t => ln (@?f t)) _ _ => apply (D_ln f); [side | deriv]
  | |- is_derive (fun t => / sqrt (@?f t)) _ _ => apply (D_rsqrt f); [side | deriv]
  | |- is_derive (fun t => / @?f t) _ _ => apply (D_inv f); [side | deriv]
  | |- is_derive (fun t => sqrt (@?f t)) _ _ => apply (D_sqrt f); [side | deriv]
  | |- is_derive (fun t => Rpower (@?f t) ?k) _ _ => apply (D_Rpower f); [side | deriv]
  | |- is_derive (fun t => tanh (@?f t)) _ _ => apply (D_tanh f); deriv
  | |- is_derive (fun t => cosh (@?f t)) _ _ => apply (D_cosh f); deriv
  | |- is_derive (fun t => sinh (@?f t)) _ _ => apply (D_sinh f); deriv
  | |- is_derive (fun t => erf (@?f t)) _ _ => apply (D_erf f); deriv
  | |- is_derive (fun t => Rabs (@?f t)) _ _ => apply (D_Rabs f); [side | deriv]
  | |- is_derive (fun t => sgn (@?f t)) _ _ => eapply (D_sgn f); [side | deriv]
  | |- is_derive (fun t => choice (@?b t) (@?f t) (@?g t)) _ _ =>
    apply (D_choice b f g); [still | intros; told; deriv | intros; told; deriv]
  | |- is_derive (fun t => Largest ?n (fun i => @?f t i)) _ _ => eapply (D_Largest n f); [assumption | intros; deriv | cbv beta; intros; auto with side]
  | |- is_derive (fun t => Sum ?n (fun i => @?f t i)) _ _ => apply (D_Sum n f); intros; deriv
  | |- _ => match goal with H : context [is_derive] |- _ => solve [eapply H; within] end
  end
with still := cbv beta; lazymatch goal with
  | |- steady (fun _ => ?k) _ => apply steady_const
  | |- steady (fun t => leR (@?f t) (@?g t)) _ => eapply (steady_leR f g); [deriv | deriv | side]
  | |- steady (fun t => ltR (@?f t) (@?g t)) _ => eapply (steady_ltR f g); [deriv | deriv | side]
  | |- steady (fun t => eqR (@?f t) (@?g t)) _ => eapply (steady_eqR f g); [deriv | deriv | side]
  | |- steady (fun t => negb (@?b t)) _ => apply (steady_negb b); still
  | |- steady (fun t => andb (@?b t) (@?c t)) _ => apply (steady_andb b c); still
  | |- steady (fun t => orb (@?b t) (@?c t)) _ => apply (steady_orb b c); still end.
(* What stands under a root is not looked at: the root is a number that is not 0. *)
Ltac hidden := match goal with |- context [sqrt ?u] => let P := fresh in
  assert (P : 0 < sqrt u) by (apply sqrt_lt_R0; first [solve [auto 3 with side] | assumed]);
  revert P; generalize (sqrt u); intros end.
Ltac tangent := eapply D_eq; [deriv | cbv beta; simpl INR; simpl pred; first [reflexivity | repeat hidden; sums]].
Ltac quick := parts; eapply n_eq; [norm | norm |]; matched; plain.
(* All is opened, but sums are split before: entries at labels are read, exponentials of sums are
   products, and what is left are numbers, of which some are not 0. *)
Ltac picked := repeat match goal with |- context [Sum ?n (fun i => ind (Nat.eqb ?k i) * @?f i)] =>
  rewrite (Sum_pick n k f) by solve [auto 4 with side]; cbv beta end.
Ltac normed u := let r := fresh in let H := fresh in evar (r : R); assert (H : u = r) by (subst r; norm); subst r;
  lazymatch type of H with u = u * 1 + 0 => fail | _ => rewrite H; clear H end.
Ltac exponential := match goal with |- context [exp ?a] => normed (exp a) | |- context [Rpower ?a ?b] => normed (Rpower a b)
  | |- context [Sum ?n ?f] => normed (Sum n f) end.
Ltac hot := match goal with |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b); cbn [ind]; try subst end.
Ltac number u := let P := fresh in first [
  assert (P : 0 < u) by first [solve [auto 4 with side] | apply exp_pos | apply Sum_pos; [some | intros; apply exp_pos]]
  | assert (P : u <> 0) by solve [auto 4 with side] | assert (P : True) by easy];
  revert P; generalize u; intros ? P.
Ltac numbers := repeat match goal with
  | |- context [exp ?a] => number (exp a) | |- context [Sum ?n ?f] => number (Sum n f)
  | |- context [ln ?a] => number (ln a) | |- context [Rpower ?a ?b] => number (Rpower a b)
  | |- context [INR ?n] => number (INR n) end.
Ltac opening opened := eapply n_eq; [norm | norm |]; opened; picked; repeat exponential; repeat hot; numbers;
  first [ring | field; repeat split; first [assumption | lra | side]].
(* Numbers alone: choices are made, exponentials are powers of few, logarithms of products are sums. *)
Lemma ln_times a b c : 0 < b -> a = exp c * b -> ln a = c + ln b.
Proof. intros ? ->. rewrite ln_mult, ln_exp by (easy || apply exp_pos). reflexivity. Qed.
Lemma ln_over a b c : 0 < b -> a = exp c * / b -> ln a = c - ln b.
Proof. intros ? ->. rewrite ln_mult, ln_exp, ln_Rinv by (easy || apply exp_pos || now apply Rinv_0_lt_compat). ring. Qed.
Ltac chosen := match goal with
  | |- context [choice ?b _ _] => case_of b; cbn [choice]; try solve [exfalso; lra]
  | |- context [Rabs ?u] => first [rewrite (Rabs_right u) by lra | rewrite (Rabs_left1 u) by lra
    | destruct (Rle_lt_dec u 0)]
  | A : ?u <= 0, B : 0 <= ?u |- _ => rewrite (Rle_antisym u 0 A B) in *; clear A B end.
Ltac exponent := match goal with
  | |- context [exp (?a + ?b)] => rewrite (exp_plus a b)
  | |- context [exp (?a - ?b)] => unfold Rminus at 1
  | |- context [exp (- ?a)] => rewrite (exp_Ropp a)
  | |- context [exp (ln ?u)] => rewrite (exp_ln u) by numeral
  | |- context [exp 0] => rewrite exp_0
  | |- context [exp ?a] => match goal with |- context [exp ?b] => tryif constr_eq a b then fail else
    (let H := fresh in first [assert (H : a = b) by ring; rewrite H | assert (H : a = - b) by ring; rewrite H, (exp_Ropp b)]; clear H) end end
with numeral := repeat exponent; numbers; first [assumption | lra | solve [pos] | nra].
Ltac equated := repeat exponent; numbers; first [ring | field; repeat split; numeral].
Ltac related a b c := first [rewrite (ln_times a b c) by (assumption || equated)
  | rewrite (ln_over a b c) by (assumption || equated)].
Ltac logarithm := match goal with |- context [ln ?a] => match goal with |- context [ln ?b] =>
  tryif constr_eq a b then fail else (assert (0 < b) by pos; first [related a b 0
    | match goal with |- context [exp ?c] => first [related a b c | related a b (- c)] end]) end end.
Ltac numeric := unfold tanh, sinh, cosh; repeat chosen; repeat logarithm; repeat arguments; equated.
Ltac resettled := idtac.
Ltac alone := lazymatch goal with |- context [Sum _ _] => fail | _ => resettled; numeric end.
Ltac merged := repeat rewrite Sum_add; first [apply Sum_ext; intros; cbv beta; merged | alone].
Ltac passing own := first [solve [merged] | solve [sums] | own; sums].
Ltac closing chain algebra parts whole := chain; first [reflexivity | solve [quick] | solve [progress algebra; quick]
  | solve [progress parts; quick] | solve [opening ltac:(parts; algebra; whole)]
  | solve [parts; whole; alone] | solve [progress parts; algebra; quick]
  | solve [parts; sums] | solve [parts; algebra; sums] | parts; whole; sums].
Ltac known_sums ::= sums.
