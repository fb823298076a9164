"""Lines of torch for the rows of networks: losses, norms, attention, cells, windows, products."""

XY, MATRIX, PAIRS, THREE = "x: N, y: N", "x: N C", "x: N C, y: N C", "x: N C, y: N C, z: N C"
LABELS, WEIGHTED = "x: N C, y: N int", "x: N C, y: N int, w: C"
SEQUENCE, IMAGE, VOLUME = "x: N C T", "x: N C H W", "x: N C H W T"
GATES = "x: N K, h: N 2, s: N 2, w: {0} K, u: {0} 2, b: {0}, c: {0}"
QKV = "q: N T E, k: N S E, v: N S D"
HEADS = (
    "F.multi_head_attention_forward(x, x, x, 6, 2, torch.cat([w, w[:6]]), torch.cat([b, b[:6]]),"
    " None, None, False, 0.0, o[:, :6]"
)

ROWS = {
    # Losses
    "smooth_l1_loss": (PAIRS, "F.smooth_l1_loss(x, y)"),
    "smooth_l1_loss(beta)": (PAIRS, "F.smooth_l1_loss(x, y, beta=0.3, reduction='sum')"),
    "smooth_l1_loss(none)": (PAIRS, "F.smooth_l1_loss(x, y, reduction='none', beta=0.5)"),
    "poisson_nll_loss": (XY, "F.poisson_nll_loss(x, y)"),
    "poisson_nll_loss(full)": (
        XY,
        "F.poisson_nll_loss(x**2, 1.5 + y**2, log_input=False, full=True)",
    ),
    "gaussian_nll_loss": (THREE, "F.gaussian_nll_loss(x, y, z**2 + 0.1)"),
    "gaussian_nll_loss(full)": (
        "x: N C, y: N C, z: N",
        "F.gaussian_nll_loss(x, y, z**2, full=True, eps=1e-3)",
    ),
    "hinge_embedding_loss": (PAIRS, "F.hinge_embedding_loss(x, y.sign(), margin=0.5)"),
    "cosine_embedding_loss": (
        "x: N C, y: N C, t: N",
        "F.cosine_embedding_loss(x, y, t.sign(), margin=0.1)",
    ),
    "triplet_margin_loss": (THREE, "F.triplet_margin_loss(x, y, z)"),
    "triplet_margin_loss(p)": (
        THREE,
        "F.triplet_margin_loss(x, y, z, margin=0.5, p=1, reduction='none')",
    ),
    "triplet_margin_loss(swap)": (THREE, "F.triplet_margin_loss(x, y, z, swap=True)"),
    "triplet_margin_with_distance_loss": (
        THREE,
        "F.triplet_margin_with_distance_loss(x, y, z, margin=0.7)",
    ),
    "multilabel_soft_margin_loss": (
        "x: N C, y: N C, w: C",
        "F.multilabel_soft_margin_loss(x, y, weight=w)",
    ),
    "multi_margin_loss": (WEIGHTED, "F.multi_margin_loss(x, y, p=2, margin=0.5, weight=w)"),
    "kl_div(batchmean)": (
        PAIRS,
        "F.kl_div(x, y.softmax(1), reduction='batchmean')",
    ),
    "mse_loss(weight)": (
        THREE,
        "F.mse_loss(x, y) + F.mse_loss(x, y, weight=z**2) + F.huber_loss(x, y, weight=z)",
    ),
    "cross_entropy": (LABELS, "F.cross_entropy(x, y)"),
    "cross_entropy(weight)": (WEIGHTED, "F.cross_entropy(x, y, weight=w**2, reduction='sum')"),
    "cross_entropy(smoothing)": (WEIGHTED, "F.cross_entropy(x, y, w**2, label_smoothing=0.1)"),
    "cross_entropy(none)": (WEIGHTED, "F.cross_entropy(x, y, w, reduction='none')"),
    "cross_entropy(transposed)": (
        "x: N T C, y: N T int",
        "F.cross_entropy(x.transpose(1, 2), y, label_smoothing=0.1)",
    ),
    "cross_entropy(probabilities)": (
        "x: N C, y: N C, w: C",
        "F.cross_entropy(x, y.softmax(1), weight=w, label_smoothing=0.2)",
    ),
    "linear_cross_entropy": (
        "x: N K, z: C K, y: N int, b: C",
        "F.linear_cross_entropy(x, z, y, linear_bias=b, label_smoothing=0.1)",
    ),
    "nll_loss": (WEIGHTED, "F.nll_loss(F.log_softmax(x, 1), y, weight=w**2)"),
    "nll_loss(image)": ("x: N C H W, y: N H W int", "F.nll_loss(x, y, reduction='none')"),
    # Normalizations
    "batch_norm": ("x: N C, w: C, b: C", "F.batch_norm(x, None, None, w, b, True, 0.1, 1e-3)"),
    "batch_norm(image)": (IMAGE, "F.batch_norm(x, None, None, training=True)"),
    "batch_norm(known)": ("x: N C, m: C, v: C, w: C", "F.batch_norm(x, m, v**2, weight=w)"),
    "_native_batch_norm_legit": (
        MATRIX,
        "torch.ops.aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)[0]",
    ),
    "_native_batch_norm_legit_no_training": (
        "x: N C, m: C given, v: C given",
        "torch.ops.aten._native_batch_norm_legit_no_training"
        "(x, None, None, m, v.square(), 0.1, 1e-5)[0]",
    ),
    "instance_norm": ("x: N C S, w: C, b: C", "F.instance_norm(x, weight=w, bias=b, eps=1e-3)"),
    "instance_norm(known)": (
        "x: N C S, m: C, v: C",
        "F.instance_norm(x, m, v**2, use_input_stats=False)",
    ),
    "group_norm": ("x: N 6 S, w: 6, b: 6", "F.group_norm(x, 3, w, b, eps=1e-3)"),
    "local_response_norm": ("x: N 6 S", "F.local_response_norm(x, 2)"),
    "_weight_norm": ("v: N C, g: N", "torch._weight_norm(v, g[:, None], 0)"),
    "prelu": ("x: N C S, w: C", "F.prelu(x, w) + torch.prelu(x, w) + x.prelu(w)"),
    "glu": ("x: N 6", "F.glu(x) + F.glu(x, dim=1)"),
    "dropout": (MATRIX, "F.dropout(x, 0.5, training=False) + torch.dropout(x, 0.5, False)"),
    "dropout(none)": (MATRIX, "x * F.dropout(x, p=0.0)"),
    "native_dropout": (MATRIX, "torch.native_dropout(x, 0.5, False)[0]"),
    "native_layer_norm": (
        "x: N C, w: C, b: C",
        "torch.native_layer_norm(x, w.shape, w, b, 1e-3)[0]",
    ),
    "native_group_norm": (
        "x: N 6 S, w: 6, b: 6",
        "torch.native_group_norm(x, w, b, x.shape[0], 6, x.shape[2], 3, 1e-3)[0]",
    ),
    "renorm": (MATRIX, "torch.renorm(x, 2, 0, 1.5)"),
    "rrelu": (MATRIX, "F.rrelu(x)"),
    # Attention
    "scaled_dot_product_attention": (QKV, "F.scaled_dot_product_attention(q, k, v)"),
    "scaled_dot_product_attention(causal)": (
        QKV.replace("S", "T"),
        "F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)",
    ),
    "scaled_dot_product_attention(added)": (
        f"{QKV}, m: T S",
        "F.scaled_dot_product_attention(q, k, v, m)",
    ),
    "scaled_dot_product_attention(masked)": (
        f"{QKV}, m: T S",
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m > -9)",
    ),
    "scaled_dot_product_attention(groups)": (
        "q: N 4 T E, k: N 2 S E, v: N 2 S D",
        "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
    ),
    "multi_head_attention_forward": (
        "x: T N 6, w: 12 6, o: 6 12, b: 12, m: N T",
        f"{HEADS}, None, key_padding_mask=m > 9)[0]",
    ),
    "multi_head_attention_forward(mask)": (
        "x: T N 6, w: 12 6, o: 6 12, b: 12, m: T",
        f"{HEADS}, None, need_weights=False, attn_mask=m[:, None] - m)[0]",
    ),
    "multi_head_attention_forward(weights)": (
        "x: T 6, w: 12 6, o: 6 12, b: 12",
        f"{HEADS}, None)[1]",
    ),
    # Cells
    "gru_cell": (GATES.format(6).replace("s: N 2, ", ""), "torch.gru_cell(x, h, w, u, b, c)"),
    "lstm_cell": (GATES.format(8), "torch.lstm_cell(x, (h, s), w, u, b, c)[0]"),
    "lstm_cell(cell)": (
        "x: N K, h: N 2, s: N 2, w: 8 K, u: 8 2",
        "torch.lstm_cell(x, (h, s), w, u)[1]",
    ),
    "rnn_tanh_cell": (
        "x: N K, h: N 3, w: 3 K, u: 3 2, b: 3",
        "torch.rnn_tanh_cell(x, h, w, u @ u.T, b, b)",
    ),
    "rnn_relu_cell": ("x: N K, h: N 3, w: 3 K, u: 3 2", "torch.rnn_relu_cell(x, h, w, u @ u.T)"),
    # Convolutions
    "conv1d": ("x: N C T, w: D C K", "F.conv1d(x, w) + torch.conv1d(input=x, weight=w)"),
    "conv1d(options)": (
        "x: N C T, w: D C K, b: D",
        "F.conv1d(x, w, b, stride=2, padding=1, dilation=2)",
    ),
    "conv1d(same)": ("x: N C T, w: D C 3, b: D", "F.conv1d(x, w, bias=b, padding='same')"),
    "conv1d(unbatched)": ("x: C T, w: D C 3, b: D", "F.conv1d(x, w, b)"),
    "conv1d(depthwise)": (
        "x: N C T, w: C 3",
        "F.conv1d(x, w[:, None], padding=2, groups=x.shape[1])[..., :-2]",
    ),
    "conv1d(groups)": ("x: N 6 T, w: 4 3 2, b: 4", "F.conv1d(x, w, b, groups=2)"),
    "conv2d": ("x: N C H W, w: D C 2 3, b: D", "F.conv2d(x, w, b, stride=(2, 1), padding=(0, 1))"),
    "conv2d(pointwise)": ("x: N C H W, w: D C", "F.conv2d(x, w[:, :, None, None])"),
    "conv3d": ("x: N C H W T, w: D C 2 3 4", "F.conv3d(x, w)"),
    "conv_transpose1d": ("x: N C T, w: C D K", "F.conv_transpose1d(x, w, dilation=2)"),
    "conv_transpose1d(options)": (
        "x: N C T, w: C D 3, b: D",
        "F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1)",
    ),
    "conv_transpose2d": (
        "x: N C H W, w: C D 2 3, b: D",
        "F.conv_transpose2d(x, w, b, stride=(2, 1))",
    ),
    "conv_transpose3d": ("x: N C H W T, w: C D 2 3 4", "F.conv_transpose3d(x, w, padding=1)"),
    # Pools
    "avg_pool1d": (SEQUENCE, "F.avg_pool1d(x, 3, 2, 1)"),
    "avg_pool1d(counted)": (
        SEQUENCE,
        "F.avg_pool1d(x, 3, stride=1, padding=1, count_include_pad=False)",
    ),
    "avg_pool1d(cut off)": ("x: N C 6", "F.avg_pool1d(x, 3, stride=2, ceil_mode=True)"),
    "avg_pool2d": (IMAGE, "F.avg_pool2d(x, (2, 3), divisor_override=3)"),
    "avg_pool3d": (VOLUME, "F.avg_pool3d(x, 2)"),
    "max_pool1d": (SEQUENCE, "F.max_pool1d(x, 3, stride=1, padding=1)"),
    "max_pool1d(cut off)": ("x: N C 6", "F.max_pool1d(x, 3, stride=2, ceil_mode=True)"),
    "max_pool2d": (IMAGE, "F.max_pool2d(x, (3, 2), stride=(1, 2), padding=(1, 0))"),
    "max_pool3d": (VOLUME, "F.max_pool3d(x, kernel_size=2)"),
    "lp_pool1d": (SEQUENCE, "F.lp_pool1d(x, 2, 2)"),
    "lp_pool2d": (IMAGE, "F.lp_pool2d(x, 2, (2, 3))"),
    "lp_pool3d": (VOLUME, "F.lp_pool3d(x, 2, 2)"),
    "adaptive_avg_pool1d": (SEQUENCE, "F.adaptive_avg_pool1d(x, 1).squeeze(2)"),
    "adaptive_avg_pool1d(parts)": ("x: N C 6", "F.adaptive_avg_pool1d(x, 3)"),
    "adaptive_avg_pool1d(unequal)": ("x: N C T", "F.adaptive_avg_pool1d(x, 3)"),
    "adaptive_avg_pool2d": (IMAGE, "F.adaptive_avg_pool2d(x, (None, 1)).squeeze(3)"),
    "adaptive_avg_pool3d": (VOLUME, "F.adaptive_avg_pool3d(x, 1).flatten(1)"),
    "adaptive_max_pool1d": ("x: N C 6", "F.adaptive_max_pool1d(x, 4)"),
    "adaptive_max_pool2d": (IMAGE, "F.adaptive_max_pool2d(x, 1).flatten(1)"),
    "adaptive_max_pool3d": (VOLUME, "F.adaptive_max_pool3d(x, 1).flatten(1)"),
    # Sizes that are changed
    "interpolate": (SEQUENCE, "F.interpolate(x, scale_factor=2)"),
    "interpolate(area)": ("x: N C 6", "F.interpolate(x, size=3, mode='area')"),
    "interpolate(half)": (SEQUENCE, "F.interpolate(x, scale_factor=0.5)"),
    "interpolate(middle)": (IMAGE, "F.interpolate(x, scale_factor=0.5, mode='nearest-exact')"),
    "interpolate(linear)": (SEQUENCE, "F.interpolate(x, scale_factor=2, mode='linear')"),
    "interpolate(corners)": (
        "x: N C 4",
        "F.interpolate(x, size=7, mode='linear', align_corners=True)",
    ),
    "interpolate(bilinear)": (IMAGE, "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    "upsample_nearest1d": ("x: N C 6", "F.interpolate(x, size=12)"),
    "upsample_nearest2d": (IMAGE, "F.interpolate(x, scale_factor=(2, 3))"),
    "upsample_nearest3d": (VOLUME, "F.interpolate(x, scale_factor=2)"),
    "_upsample_nearest_exact1d": (
        SEQUENCE,
        "F.interpolate(x, scale_factor=0.5, mode='nearest-exact')",
    ),
    "_upsample_nearest_exact2d": (IMAGE, "F.interpolate(x, scale_factor=2, mode='nearest-exact')"),
    "_upsample_nearest_exact3d": (VOLUME, "F.interpolate(x, scale_factor=2, mode='nearest-exact')"),
    "upsample_linear1d": (SEQUENCE, "F.interpolate(x, scale_factor=3, mode='linear')"),
    "upsample_bilinear2d": (IMAGE, "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    "upsample_trilinear3d": (VOLUME, "F.interpolate(x, scale_factor=2, mode='trilinear')"),
    "pixel_shuffle": ("x: N 8 H W", "F.pixel_shuffle(x, 2)"),
    "pixel_unshuffle": ("x: N C 4 6", "F.pixel_unshuffle(x, 2)"),
    "channel_shuffle": ("x: N 6 T", "F.channel_shuffle(x, 2)"),
    "upsample_nearest": (IMAGE, "F.upsample_nearest(x, scale_factor=2)"),
    "upsample_bilinear": ("x: N C 3 4", "F.upsample_bilinear(x, size=(5, 7))"),
    # Products
    "linalg_vecdot": (PAIRS, "torch.linalg.vecdot(x, y) + torch.linalg.vecdot(x, y, dim=1)"),
    "kron": ("x: 2 3, y: 4 2", "torch.kron(x, y)"),
    "mm": ("x: N K, y: K C", "torch.mm(x, y) + x.mm(mat2=y)"),
    "bmm": ("x: N C K, y: N K D", "x.bmm(y)"),
    "mv": ("x: N K, y: K", "torch.mv(x, y)"),
    "dot": (XY, "x.dot(y)"),
    "vdot": (XY, "torch.vdot(x, y)"),
    "inner": ("x: N C K, y: K", "torch.inner(x, y)"),
    "inner(vectors)": (XY, "torch.inner(x, y)"),
    "addmv": ("x: N, y: N K, z: K", "torch.addmv(x, y, z, beta=0.5)"),
    "addr": ("x: N C, y: N, z: C", "torch.addr(x, y, z, alpha=2)"),
    "addbmm": ("x: N C, y: T N K, z: T K C", "torch.addbmm(x, y, z, beta=0.5)"),
    "baddbmm": ("x: T N C, y: T N K, z: T K C", "torch.baddbmm(x, y, z, alpha=2)"),
    "chain_matmul": ("x: N K, y: K T, z: T C", "torch.chain_matmul(x, y, z)"),
    "linalg_multi_dot": ("x: N K, y: K T, z: T C", "torch.linalg.multi_dot((x, y, z))"),
    "einsum": ("x: N K, y: K C", "torch.einsum('n k, k c -> n c', x, y)"),
    "einsum(dots)": ("x: N C K, y: K D", "torch.einsum('...k,kd->...d', x, y)"),
    "einsum(no arrow)": ("x: N C K, y: N K D", "torch.einsum('...ij,...jk', x, y)"),
    "einsum(diagonal)": (MATRIX, "torch.einsum('ii->i', x @ x.T)"),
    "pairwise_distance": (PAIRS, "F.pairwise_distance(x, y, p=1.0)"),
    "cdist": ("x: N K, y: C K", "torch.cdist(x, y) + torch.cdist(x, y, p=1)"),
    "cdist(batch)": ("x: N T K, y: C K", "torch.cdist(x, y, 2.0)"),
    "embedding_bag": ("y: N T int, w: V E", "F.embedding_bag(y, w)"),
    "embedding_bag(weights)": (
        "y: N T int, w: V E, p: N T",
        "F.embedding_bag(y, w, per_sample_weights=p, mode='sum')",
    ),
}
RESIZED = [name for name in ROWS if "upsample" in name and name[-1] == "d"]
IMPORTED_ALONE = dict.fromkeys(
    (
        *RESIZED,
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training",
        "_weight_norm",
        "native_dropout",
        "native_layer_norm",
        "native_group_norm",
    ),
    "only ATen has it",
)
READ_ALONE: dict[str, str] = {
    "gaussian_nll_loss": "torch asks for values while it is traced",
}
# Traced as the operations that they are made of.
DECOMPOSED = {"triplet_margin_with_distance_loss", "multilabel_soft_margin_loss", "interpolate"}
DECOMPOSED |= {"local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d"}
DECOMPOSED |= {"multi_head_attention_forward", "upsample_nearest", "upsample_bilinear"}
DECOMPOSED |= {"linear_cross_entropy"}
