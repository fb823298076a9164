"""Losses as people write them in torch, typed anew from the papers and the habits of libraries."""

import math

import torch
import torch.nn.functional as F


def focal_loss(logits, targets, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce * ((1 - p_t) ** gamma)
    if alpha >= 0:
        alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
        loss = alpha_t * loss
    return loss.mean()


def softmax_focal_loss(logits, labels, gamma=2.0):
    logp = F.log_softmax(logits, dim=1)
    logpt = logp.gather(1, labels.unsqueeze(1)).squeeze(1)
    pt = logpt.exp()
    return (-((1 - pt) ** gamma) * logpt).mean()


def dice_loss(logits, targets, smooth=1.0):
    probs = torch.sigmoid(logits).flatten(1)
    targets = targets.flatten(1)
    intersection = (probs * targets).sum(dim=1)
    union = probs.sum(dim=1) + targets.sum(dim=1)
    return 1 - ((2.0 * intersection + smooth) / (union + smooth)).mean()


def tversky_loss(probs, targets, alpha=0.3, beta=0.7, eps=1e-7):
    tp = (probs * targets).sum(dim=(1, 2))
    fp = (probs * (1 - targets)).sum(dim=(1, 2))
    fn = ((1 - probs) * targets).sum(dim=(1, 2))
    return (1 - (tp + eps) / (tp + alpha * fp + beta * fn + eps)).mean()


def charbonnier(pred, target, eps=1e-3):
    diff = pred - target
    return torch.sqrt(diff * diff + eps**2).mean()


def log_cosh(pred, target):
    x = pred - target
    return torch.mean(x + F.softplus(-2.0 * x) - math.log(2.0))


def quantile_loss(pred, target, q=0.9):
    error = target - pred
    return torch.max(q * error, (q - 1) * error).mean()


def gaussian_nll(mean, target, log_var):
    return 0.5 * (log_var + (target - mean) ** 2 / log_var.exp() + math.log(2 * math.pi)).mean()


def vae_kl(mu, logvar):
    return -0.5 * torch.mean(torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))


def distillation(student_logits, teacher_logits, T=4.0):
    p_student = F.log_softmax(student_logits / T, dim=-1)
    p_teacher = F.softmax(teacher_logits / T, dim=-1)
    return F.kl_div(p_student, p_teacher, reduction="batchmean") * T * T


def clip_loss(image, text, logit_scale):
    image = image / image.norm(dim=-1, keepdim=True)
    text = text / text.norm(dim=-1, keepdim=True)
    logits = logit_scale.exp() * image @ text.t()
    labels = torch.arange(logits.shape[0], device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def siglip_loss(image, text, t, b):
    logits = image @ text.T * t.exp() + b
    labels = 2 * torch.eye(image.size(0)) - torch.ones(image.size(0), image.size(0))
    return -F.logsigmoid(labels * logits).sum() / image.size(0)


def nt_xent(z1, z2, temperature=0.5):
    z = F.normalize(torch.cat([z1, z2], dim=0), dim=1)
    sim = z @ z.t() / temperature
    n = z1.shape[0]
    mask = torch.eye(2 * n, dtype=torch.bool)
    sim = sim.masked_fill(mask, float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, targets)


def barlow_twins(z_a, z_b, lambd=0.005):
    n, d = z_a.shape
    z_a = (z_a - z_a.mean(0)) / z_a.std(0)
    z_b = (z_b - z_b.mean(0)) / z_b.std(0)
    c = z_a.T @ z_b / n
    on_diag = (torch.diagonal(c) - 1).pow(2).sum()
    off_diag = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
    return on_diag + lambd * off_diag


def vicreg(x, y, sim=25.0, std=25.0, cov=1.0):
    batch, dim = x.shape
    repr_loss = F.mse_loss(x, y)
    x = x - x.mean(dim=0)
    y = y - y.mean(dim=0)
    std_x = torch.sqrt(x.var(dim=0) + 0.0001)
    std_y = torch.sqrt(y.var(dim=0) + 0.0001)
    std_loss = torch.mean(F.relu(1 - std_x)) / 2 + torch.mean(F.relu(1 - std_y)) / 2
    cov_x = (x.T @ x) / (batch - 1)
    cov_y = (y.T @ y) / (batch - 1)
    eye = torch.eye(dim)
    cov_loss = ((cov_x * (1 - eye)) ** 2).sum() / dim + ((cov_y * (1 - eye)) ** 2).sum() / dim
    return sim * repr_loss + std * std_loss + cov * cov_loss


def triplet(anchor, positive, negative, margin=1.0):
    d_pos = (anchor - positive).pow(2).sum(-1)
    d_neg = (anchor - negative).pow(2).sum(-1)
    return F.relu(d_pos - d_neg + margin).mean()


def contrastive(x1, x2, y, margin=1.0):
    dist = torch.sqrt(((x1 - x2) ** 2).sum(1) + 1e-12)
    return (y * dist**2 + (1 - y) * torch.clamp(margin - dist, min=0) ** 2).mean()


def supervised_contrastive(features, labels, temperature=0.1):
    features = F.normalize(features, dim=1)
    mask = torch.eq(labels.view(-1, 1), labels.view(1, -1)).float()
    logits = torch.matmul(features, features.T) / temperature
    logits = logits - logits.max(dim=1, keepdim=True)[0].detach()
    logits_mask = 1 - torch.eye(features.shape[0])
    mask = mask * logits_mask
    exp_logits = torch.exp(logits) * logits_mask
    log_prob = logits - torch.log(exp_logits.sum(1, keepdim=True))
    return -((mask * log_prob).sum(1) / mask.sum(1)).mean()


def label_smoothing(logits, target, smoothing=0.1):
    log_probs = F.log_softmax(logits, dim=-1)
    nll = -log_probs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
    smooth = -log_probs.mean(dim=-1)
    return ((1.0 - smoothing) * nll + smoothing * smooth).mean()


def poly_loss(logits, labels, eps=1.0):
    ce = F.cross_entropy(logits, labels, reduction="none")
    pt = (F.one_hot(labels, logits.size(1)) * logits.softmax(1)).sum(1)
    return (ce + eps * (1 - pt)).mean()


def arcface(cosine, labels, s=30.0, m=0.5):
    sine = torch.sqrt((1.0 - cosine**2).clamp(min=1e-9))
    phi = cosine * math.cos(m) - sine * math.sin(m)
    one_hot = torch.zeros_like(cosine)
    one_hot.scatter_(1, labels.view(-1, 1), 1)
    output = one_hot * phi + (1.0 - one_hot) * cosine
    return F.cross_entropy(output * s, labels)


def asymmetric_loss(x, y, gamma_neg=4, gamma_pos=1, clip=0.05, eps=1e-8):
    p = torch.sigmoid(x)
    xs_neg = (1 - p + clip).clamp(max=1)
    los_pos = y * torch.log(p.clamp(min=eps))
    los_neg = (1 - y) * torch.log(xs_neg.clamp(min=eps))
    loss = los_pos + los_neg
    pt = p * y + xs_neg * (1 - y)
    gamma = gamma_pos * y + gamma_neg * (1 - y)
    return -(loss * torch.pow(1 - pt, gamma)).sum()


def wing_loss(pred, target, w=10.0, epsilon=2.0):
    c = w * (1.0 - math.log(1.0 + w / epsilon))
    x = torch.abs(pred - target)
    return torch.where(x < w, w * torch.log(1.0 + x / epsilon), x - c).mean()


def lm_loss(logits, labels):
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    return F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))


def token_loss(logits, targets):
    B, T, V = logits.shape
    return F.cross_entropy(logits.view(B * T, V), targets.view(B * T), ignore_index=-1)


def dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=0.1):
    logits = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
    losses = -F.logsigmoid(beta * logits)
    return losses.mean()


def ppo_loss(logp, old_logp, advantages, clip_eps=0.2):
    ratio = torch.exp(logp - old_logp)
    clipped = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps)
    return -torch.min(ratio * advantages, clipped * advantages).mean()


def value_loss(values, old_values, returns, clip=0.2):
    clipped = old_values + (values - old_values).clamp(-clip, clip)
    losses = torch.max((values - returns) ** 2, (clipped - returns) ** 2)
    return 0.5 * losses.mean()


def entropy_bonus(logits):
    log_p = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -(log_p.exp() * log_p).sum(-1).mean()


def masked_mse(pred, target, mask):
    mask = mask.float()
    return (((pred - target) ** 2) * mask).sum() / mask.sum().clamp(min=1)


def masked_lm(logits, labels, mask):
    logp = torch.log_softmax(logits, -1)
    picked = torch.gather(logp, -1, labels[..., None]).squeeze(-1)
    return -(picked * mask).sum() / mask.sum()


def ciou_like(pred, target):
    x1, y1, x2, y2 = pred.unbind(-1)
    a1, b1, a2, b2 = target.unbind(-1)
    inter_w = (torch.min(x2, a2) - torch.max(x1, a1)).clamp(min=0)
    inter_h = (torch.min(y2, b2) - torch.max(y1, b1)).clamp(min=0)
    inter = inter_w * inter_h
    union = (x2 - x1).abs() * (y2 - y1).abs() + (a2 - a1).abs() * (b2 - b1).abs() - inter
    return (1 - inter / (union + 1e-7)).mean()


def cosine_loss(a, b):
    return (1 - F.cosine_similarity(a, b, dim=-1)).mean()


def center_loss(features, labels, centers):
    return ((features - centers[labels]) ** 2).sum(1).mean() / 2


def proxy_nca(embeddings, labels, proxies):
    e = F.normalize(embeddings, p=2, dim=-1)
    p = F.normalize(proxies, p=2, dim=-1)
    dist = (e[:, None, :] - p[None, :, :]).pow(2).sum(-1)
    return F.cross_entropy(-dist, labels)


def mmd_rbf(x, y, sigma=1.0):
    def kernel(a, b):
        d = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(2)
        return torch.exp(-d / (2 * sigma**2))

    return kernel(x, x).mean() + kernel(y, y).mean() - 2 * kernel(x, y).mean()


def moe_balance(router_logits):
    probs = router_logits.softmax(-1)
    return router_logits.size(-1) * (probs.mean(0) ** 2).sum()


def z_loss(logits, weight=1e-4):
    return weight * torch.logsumexp(logits, dim=-1).square().mean()


def total_variation(img):
    dh = (img[:, 1:, :] - img[:, :-1, :]).abs().mean()
    dw = (img[:, :, 1:] - img[:, :, :-1]).abs().mean()
    return dh + dw


def orthogonality(w):
    gram = w @ w.T
    return ((gram - torch.eye(w.shape[0])) ** 2).sum()


def jensen_shannon(p_logits, q_logits):
    p, q = p_logits.softmax(-1), q_logits.softmax(-1)
    m = 0.5 * (p + q)
    kl_p = (p * (p.log() - m.log())).sum(-1)
    kl_q = (q * (q.log() - m.log())).sum(-1)
    return (0.5 * (kl_p + kl_q)).mean()


def bpr(users, pos, neg):
    pos_score = (users * pos).sum(-1)
    neg_score = (users * neg).sum(-1)
    return -F.logsigmoid(pos_score - neg_score).mean()


def evidential(gamma, nu, alpha, beta, y):
    error = torch.abs(y - gamma)
    two_beta = 2 * beta * (1 + nu)
    nll = 0.5 * torch.log(math.pi / nu) - alpha * torch.log(two_beta)
    nll = nll + (alpha + 0.5) * torch.log(nu * error**2 + two_beta)
    return (nll + 0.01 * error * (2 * nu + alpha)).mean()


def hinge_gan(real, fake):
    return F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean()


def spectral_flatness(x, eps=1e-5):
    return torch.exp(torch.log(x**2 + eps).mean(-1)) / (x.pow(2) + eps).mean(-1)


AXES = {
    "focal_loss": "logits: N C, targets: N C",
    "softmax_focal_loss": "logits: N C, labels: N",
    "dice_loss": "logits: N H W, targets: N H W",
    "tversky_loss": "probs: N H W, targets: N H W",
    "charbonnier": "pred: N C, target: N C",
    "log_cosh": "pred: N C, target: N C",
    "quantile_loss": "pred: N, target: N",
    "gaussian_nll": "mean: N D, target: N D, log_var: N D",
    "vae_kl": "mu: N D, logvar: N D",
    "distillation": "student_logits: N C, teacher_logits: N C",
    "clip_loss": "image: N D, text: N D, logit_scale:",
    "siglip_loss": "image: N D, text: N D, t:, b:",
    "nt_xent": "z1: N D, z2: N D",
    "barlow_twins": "z_a: N D, z_b: N D",
    "vicreg": "x: N D, y: N D",
    "triplet": "anchor: N D, positive: N D, negative: N D",
    "contrastive": "x1: N D, x2: N D, y: N",
    "supervised_contrastive": "features: N D, labels: N",
    "label_smoothing": "logits: N C, target: N",
    "poly_loss": "logits: N C, labels: N",
    "arcface": "cosine: N C, labels: N",
    "asymmetric_loss": "x: N C, y: N C",
    "wing_loss": "pred: N C, target: N C",
    "lm_loss": "logits: B T V, labels: B T",
    "token_loss": "logits: B T V, targets: B T",
    "dpo_loss": "policy_chosen: N, policy_rejected: N, ref_chosen: N, ref_rejected: N",
    "ppo_loss": "logp: N, old_logp: N, advantages: N",
    "value_loss": "values: N, old_values: N, returns: N",
    "entropy_bonus": "logits: N A",
    "masked_mse": "pred: B T, target: B T, mask: B T",
    "masked_lm": "logits: B T V, labels: B T, mask: B T",
    "ciou_like": "pred: N 4, target: N 4",
    "cosine_loss": "a: N D, b: N D",
    "center_loss": "features: N D, labels: N, centers: C D",
    "proxy_nca": "embeddings: N D, labels: N, proxies: C D",
    "mmd_rbf": "x: N D, y: M D",
    "moe_balance": "router_logits: N E",
    "z_loss": "logits: N C",
    "total_variation": "img: B H W",
    "orthogonality": "w: K D",
    "jensen_shannon": "p_logits: N C, q_logits: N C",
    "bpr": "users: N D, pos: N D, neg: N D",
    "evidential": "gamma: N, nu: N, alpha: N, beta: N, y: N",
    "hinge_gan": "real: N, fake: N",
    "spectral_flatness": "x: N F",
}
