"""What `torch.func` and `create_graph` make of a function, against the same of another one."""

import pytest
import torch
from torch.func import grad, jacrev, vjp, vmap
from torch.utils._pytree import tree_leaves

ROUNDINGS = 500  # more than lie between an input and a third derivative of these few numbers


def uneven(out):
    """The results, each times a number of its own."""
    return out * torch.arange(1, out.numel() + 1).cos().reshape(out.shape).to(out)


def one_number(function):
    """A loss that is not linear in the results."""

    def loss(*inputs):
        return uneven(function(*inputs).sin()).sum()

    return loss


def every(inputs):
    return tuple(range(len(inputs)))


def steepness(gradients):
    return sum((gradient**2).sum() for gradient in gradients)


def by_grad(function, inputs):
    """First and second derivatives."""
    first = grad(one_number(function), every(inputs))
    return first(*inputs), grad(lambda *given: steepness(first(*given)), every(inputs))(*inputs)


def by_vjp(function, inputs):
    """The gradient, and its own derivative by autograd, outside."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    out, pull_back = vjp(function, *leaves)
    first = pull_back(uneven(out))
    return *first, *torch.autograd.grad(steepness(first), leaves)


def by_vjp_without_a_graph(function, inputs):
    out, pull_back = vjp(function, *inputs)
    with torch.no_grad():
        return pull_back(uneven(out))


def by_backward(function, inputs):
    """First derivatives, as a trainer has them."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    return torch.autograd.grad(one_number(function)(*leaves), leaves)


def by_jacrev(function, inputs):
    return jacrev(function, every(inputs))(*inputs)


def by_jacrev_twice(function, inputs):
    return jacrev(jacrev(one_number(function), every(inputs)), every(inputs))(*inputs)


def by_create_graph(function, inputs):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    first = torch.autograd.grad(one_number(function)(*leaves), leaves, create_graph=True)
    second = torch.autograd.grad(steepness(first), leaves, create_graph=True)
    return *first, *second, *torch.autograd.grad(steepness(second), leaves)


def members(inputs):
    """Two of a population, the second with other inputs."""
    return [torch.stack([tensor, tensor.flip(0)]) for tensor in inputs]


def in_company(transform):
    """The same of a whole population."""
    return lambda function, inputs: transform(vmap(function), members(inputs))


def member_by_member(transform):
    """The same of each member under ``vmap``."""
    return lambda function, inputs: vmap(lambda *own: transform(function, own))(*members(inputs))


TRANSFORMS = {
    "grad": by_grad,
    "vjp": by_vjp,
    "vjp without a graph": by_vjp_without_a_graph,
    "jacrev": by_jacrev,
    "jacrev of jacrev": by_jacrev_twice,
    "backward": by_backward,
    "backward of vmap": in_company(by_backward),
    "create_graph": by_create_graph,
    "create_graph of vmap": in_company(by_create_graph),
    "jacrev of vmap": in_company(by_jacrev),
    "vmap of grad": member_by_member(by_grad),
    "vmap of jacrev": member_by_member(by_jacrev),
}


@pytest.fixture(params=TRANSFORMS)
def check_derivatives(request):
    """Compare a function's derivatives with those of another one in float64."""

    transform = TRANSFORMS[request.param]

    def check(function, dense, inputs):
        results = tree_leaves(transform(function, inputs))
        expected = tree_leaves(transform(dense, [tensor.double() for tensor in inputs]))
        for result, exact in zip(results, expected, strict=True):
            largest = max(1.0, float(exact.detach().abs().max()))
            atol = ROUNDINGS * torch.finfo(result.dtype).eps * largest
            torch.testing.assert_close(result.double(), exact, rtol=0, atol=atol)

    return check
