"""Unsupported torch operations, each with the reason and a remedy; both front ends print it."""

from __future__ import annotations

OUTSIDE = "draw them outside the function and pass them as an argument"
# The reason and the remedy, by the operation's names in Python and ATen.
REASONS: dict[tuple[str, str], str] = {
    ("random numbers", OUTSIDE): (
        "rand randn randint rand_like randn_like randint_like bernoulli normal normal_ uniform"
        " uniform_ randperm multinomial exponential normal_functional poisson cauchy geometric"
        " log_normal random feature_alpha_dropout fractional_max_pool2d fractional_max_pool3d"
        " pca_lowrank svd_lowrank"
    ),
    ("sorting or counting", "a forward does not support it: do it outside"): (
        "topk sort argsort msort kthvalue median nanmedian mode quantile nanquantile nonzero unique"
        " _unique2 unique_dim unique_consecutive bincount histc searchsorted bucketize"
        " multilabel_margin_loss"
    ),
    ("a shape that depends on values", "multiply by the mask, or write torch.where"): (
        "masked_select masked_scatter to_sparse segment_reduce _segment_reduce combinations"
    ),
    ("complex numbers", "write the real and the imaginary part as two tensors"): (
        "angle real imag conj conj_physical conj_physical_ resolve_conj resolve_neg complex polar"
        " view_as_complex view_as_real cfloat cdouble chalf H mH stft istft fft_fft fft_fft2"
        " fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_irfft fft_irfft2"
        " fft_irfftn fft_hfft fft_hfft2 fft_hfftn fft_ihfft fft_ihfft2 fft_ihfftn adjoint matrix_H"
    ),
    (
        "a decomposition of a matrix",
        "in a class body write Inverse, Solve, Cholesky or LogDet; others are not in the notation",
    ): (
        "cholesky cholesky_inverse cholesky_solve inverse det logdet slogdet pinverse qr svd lu"
        " lu_solve lu_unpack ormqr triangular_solve matrix_exp matrix_power linalg_cholesky"
        " linalg_cholesky_ex linalg_cond linalg_det linalg_eig linalg_eigh linalg_eigvals"
        " linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq"
        " linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve"
        " linalg_matrix_power linalg_matrix_rank linalg_pinv linalg_qr linalg_slogdet linalg_solve"
        " linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv"
        " linalg_tensorsolve linalg_matrix_exp"
    ),
    (
        "interpolation at arbitrary positions",
        "read at integer positions, and weigh the neighbours",
    ): (
        "grid_sample grid_sampler grid_sampler_2d grid_sampler_3d _upsample_bilinear2d_aa"
        " upsample_bicubic2d"
    ),
    (
        "a recurrence along two axes",
        "write it along anti-diagonals: docs/notation.md#recurrences",
    ): ("ctc_loss _ctc_loss"),
    ("memory read by strides", "write slices, unfold or diagonal"): (
        "as_strided as_strided_copy as_strided_scatter"
    ),
    ("pairs of rows as one list", "write torch.cdist, and take the entries above its diagonal"): (
        "pdist"
    ),
    ("unpooling", "compare with the maximum to find the positions"): (
        "max_unpool1d max_unpool2d max_unpool3d"
    ),
    ("torch.masked and sparse tensors", "write torch.where with the mask, or dense tensors"): (
        "masked_amax masked_amin masked_cumprod masked_cumsum masked_log_softmax masked_logaddexp"
        " masked_logsumexp masked_mean masked_median masked_norm masked_normalize masked_prod"
        " masked_softmax masked_softmin masked_std masked_sum masked_var sparse_mm"
        " sparse_sampled_addmm"
    ),
    ("an operation that others express", "compose it of cat, stack, slices, roll and sums"): (
        "block_diag cartesian_prod gradient index_reduce linalg_vander vander sum_to_size"
        " fft_fftshift fft_ifftshift"
    ),
    ("writing at positions that depend on values", "write torch.where, or index_add into zeros"): (
        "index_copy put"
    ),
    (
        "the bits of a float",
        "a forward cannot express this: compute it outside",
    ): "frexp nextafter signbit",
}
refused = {name: reason for reason, names in REASONS.items() for name in names.split()}
