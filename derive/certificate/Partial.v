(* Partial derivatives, of the theorem about curves: the curve that moves one entry alone, at t, has
   a tangent that is 1 there and 0 elsewhere; with it the sum of all dx * x' is the entry of dx. *)
From Coq Require Import Reals Arith.
From Coquelicot Require Import Coquelicot.
Require Import Grad.
Open Scope R_scope.

Definition moved (x : nat -> R) (k : nat) (t s : R) (i : nat) : R := x i + (s - t) * ind (Nat.eqb k i).
Definition moved2 (x : nat -> nat -> R) (k l : nat) (t s : R) (i j : nat) : R :=
  x i j + (s - t) * (ind (Nat.eqb k i) * ind (Nat.eqb l j)).
Lemma at_t x k t i : moved x k t t i = x i. Proof. unfold moved; ring. Qed.
Lemma at_t2 x k l t i j : moved2 x k l t t i j = x i j. Proof. unfold moved2; ring. Qed.
Lemma tangent_of_moved x k t i : is_derive (fun s => moved x k t s i) t (ind (Nat.eqb k i)).
Proof.
  unfold moved. assert (I : is_derive (fun s : R => s) t 1) by apply (is_derive_id (K := R_AbsRing)).
  eapply D_eq; [deriv|]. cbv beta. ring.
Qed.
Lemma tangent_of_moved2 x k l t i j :
  is_derive (fun s => moved2 x k l t s i j) t (ind (Nat.eqb k i) * ind (Nat.eqb l j)).
Proof.
  unfold moved2. assert (I : is_derive (fun s : R => s) t 1) by apply (is_derive_id (K := R_AbsRing)).
  eapply D_eq; [deriv|]. cbv beta. ring.
Qed.
Lemma partial n k dx : (k < n)%nat -> Sum n (fun i => dx i * ind (Nat.eqb k i)) = dx k.
Proof. intros. rewrite <- (Sum_pick n k dx) by easy. apply Sum_ext; intros; ring. Qed.
Lemma partial2 n m k l dx : (k < n)%nat -> (l < m)%nat ->
  Sum n (fun i => Sum m (fun j => dx i j * (ind (Nat.eqb k i) * ind (Nat.eqb l j)))) = dx k l.
Proof.
  intros. rewrite <- (partial n k (fun i => dx i l)) by easy. apply Sum_ext; intros i _.
  rewrite <- (partial m l (dx i)) by easy. rewrite Sum_mul_r. apply Sum_ext; intros; ring.
Qed.
Print Assumptions partial2.
