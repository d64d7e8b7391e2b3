"""Every name of Triton's language is there, or refused with a reason; signatures are Triton's."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import ltl
from loom_core.base.diagnostics import LoomError
from ltl import libdevice
from ltl.dtypes import REFUSED as REFUSED_TYPES
from ltl.dtypes import RefusedType
from ltl.refused import REFUSED


def words(text: str) -> list[str]:
    return text.split()


# `triton.language.__all__`: what 3.6 and 3.9 have in common, and what each has alone.
COMMON = words("""
    PropagateNan TRITON_MAX_TENSOR_NUMEL abs add arange argmax argmin associative_scan assume atomic_add atomic_and
    atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge block_type broadcast
    broadcast_to cast cat cdiv ceil clamp condition const constexpr constexpr_type cos cumprod cumsum debug_barrier
    device_assert device_print div_rn dot dot_scaled dtype erf exp exp2 expand_dims extra fdiv flip float16 float32
    float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram
    inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2
    make_block_ptr make_tensor_descriptor map_elementwise math max max_constancy max_contiguous maximum min minimum
    mul multiple_of num_programs pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type program_id
    rand rand4x randint randint4x randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin slice
    softmax sort split sqrt sqrt_rn static_assert static_print static_range store store_tensor_descriptor
    sub sum swizzle2d target_info tensor tensor_descriptor topk trans tuple uint16 uint32 uint64 uint8
    uint_to_uniform_float umulhi view void where xor_sum zeros zeros_like
""")
ONLY_3_6 = ["advance"]
ONLY_3_9 = ["atomic_load", "atomic_poll", "atomic_store", "expect_zero", "squeeze", "to_tensor", "unsqueeze"]
NAMES = {"3.6": sorted([*COMMON, *ONLY_3_6]), "3.9": sorted([*COMMON, *ONLY_3_9])}
EVERY = sorted({*NAMES["3.6"], *NAMES["3.9"]})

COMPILER_NAMES = ["str_to_ty", "tensor_descriptor_type", "tuple_type"]
"""What Triton's compiler keeps in `triton.language`, beside its list of names, for itself."""

LIBDEVICE = words("""
    clz popc byte_perm mulhi mul24 brev sad abs floor rcp64h rsqrt ceil trunc exp2 saturatef fma_rn fma_rz fma_rd
    fma_ru fast_dividef div_rn div_rz div_rd div_ru rcp_rn rcp_rz rcp_rd rcp_ru sqrt_rn sqrt_rz sqrt_rd sqrt_ru
    sqrt add_rn add_rz add_rd add_ru mul_rn mul_rz mul_rd mul_ru double2float_rn double2float_rz double2float_rd
    double2float_ru double2int_rn double2int_rz double2int_rd double2int_ru double2uint_rn double2uint_rz
    double2uint_rd double2uint_ru int2double_rn uint2double_rn float2int_rn float2int_rz float2int_rd float2int_ru
    float2uint_rn float2uint_rz float2uint_rd float2uint_ru int2float_rn int2float_rz int2float_rd int2float_ru
    uint2float_rn uint2float_rz uint2float_rd uint2float_ru hiloint2double double2loint double2hiint float2ll_rn
    float2ll_rz float2ll_rd float2ll_ru float2ull_rn float2ull_rz float2ull_rd float2ull_ru double2ll_rn
    double2ll_rz double2ll_rd double2ll_ru double2ull_rn double2ull_rz double2ull_rd double2ull_ru ll2float_rn
    ll2float_rz ll2float_rd ll2float_ru ull2float_rn ull2float_rz ull2float_rd ull2float_ru ll2double_rn
    ll2double_rz ll2double_rd ll2double_ru ull2double_rn ull2double_rz ull2double_rd ull2double_ru int_as_float
    float_as_int uint_as_float float_as_uint longlong_as_double double_as_longlong fast_sinf fast_cosf fast_log2f
    fast_logf fast_expf fast_tanhf fast_tanf fast_exp10f fast_log10f fast_powf hadd rhadd sub_rn sub_rz sub_rd
    sub_ru rsqrt_rn ffs rint llrint nearbyint isnan signbit copysign finitef isinf nextafter sin cos sinpi cospi
    tan log2 exp exp10 cosh sinh tanh atan2 atan asin acos log log10 log1p acosh asinh atanh expm1 hypot rhypot
    norm3d rnorm3d norm4d rnorm4d cbrt rcbrt j0 j1 y0 y1 yn jn cyl_bessel_i0 cyl_bessel_i1 erf erfinv erfc erfcx
    erfcinv normcdfinv normcdf lgamma ldexp scalbn fmod remainder fma pow tgamma round llround fdim ilogb logb
    isfinited
""")
"""The functions of `triton.language.extra.libdevice` of 3.9."""


@pytest.mark.parametrize("name", EVERY)
def test_name_is_implemented_or_refused(name: str) -> None:
    found = getattr(ltl, name)
    refused = name in REFUSED or name in REFUSED_TYPES
    assert (name in ltl.__all__) != refused
    if isinstance(found, RefusedType):
        assert found.reason
    elif refused:
        reason, instead = REFUSED[name]
        assert reason and instead
    else:
        assert found is not None


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_functions_say_why(name: str) -> None:
    function = getattr(ltl, name)

    @ltl.jit
    def kernel(out):
        function(out)

    with pytest.raises(LoomError) as caught:
        kernel.lower("*fp32")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "LOOM-F114"
    assert REFUSED[name][0] in diagnostic.message and diagnostic.hint == REFUSED[name][1]


@pytest.mark.parametrize("name", LIBDEVICE)
def test_libdevice_function_is_implemented_or_refused(name: str) -> None:
    assert (name in libdevice.__all__) != (name in libdevice.REFUSED)
    assert callable(getattr(libdevice, name))
    assert getattr(libdevice, name).__doc__


def test_lists_are_those_of_the_installed_triton() -> None:
    tl = pytest.importorskip("triton.language")
    triton = pytest.importorskip("triton")
    if triton.__version__.startswith("3.9"):
        assert sorted(tl.__all__) == NAMES["3.9"]
    assert set(tl.__all__) <= set(EVERY)
    assert {name for name in dir(tl) if not name.startswith("_")} <= {*EVERY, *dir(ltl), *COMPILER_NAMES}


# Triton's own machinery behind the parameters, and parameters of Triton that are not part of its language.
_HIDDEN = {"_semantic", "_generator", "_builder"}
# Classes, and functions that take what Triton's do and more.
_WIDER = {"load", "store", "tensor_descriptor", "tensor", "block_type", "pointer_type", "dtype", "static_range"}


def parameters(function: Any) -> list[tuple[str, Any]]:
    shown = inspect.signature(function).parameters.values()
    return [(p.name, _plain(p.default)) for p in shown if p.name not in _HIDDEN]


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value)
    if value is inspect.Parameter.empty:
        return "required"
    return str(value) if type(value).__module__.startswith(("ltl", "triton")) else value


@pytest.mark.parametrize("name", [name for name in NAMES["3.9"] if name not in _WIDER])
def test_signatures_are_tritons(name: str) -> None:
    tl = pytest.importorskip("triton.language")
    theirs, ours = getattr(tl, name, None), getattr(ltl, name)
    theirs = getattr(theirs, "fn", theirs)
    if name in REFUSED or not (inspect.isfunction(theirs) and inspect.isfunction(ours)):
        pytest.skip("no function")
    assert parameters(ours) == parameters(theirs)


@pytest.mark.parametrize("name", ["load", "store"])
def test_loads_and_stores_take_what_tritons_take(name: str) -> None:
    tl = pytest.importorskip("triton.language")
    theirs = dict(parameters(getattr(tl, name)))
    ours = dict(parameters(getattr(ltl, name)))
    assert theirs.items() <= ours.items()


def test_tensors_have_tritons_methods() -> None:
    tl = pytest.importorskip("triton.language")
    public = {name for name in dir(tl.tensor) if not name.startswith("_")}
    assert public - set(dir(ltl.tensor)) == {"advance"}, "advance is a method of block pointers here"


def test_there_are_no_other_public_names() -> None:
    own = {"JitFunction", "aggregate_replace", "copy", "prod", "tanh", "token", "window"}
    package = {"Config", "aggregate", "autotune", "constexpr_function", "heuristics", "jit", "next_power_of_2"}
    assert set(ltl.__all__) - set(EVERY) == own | package
