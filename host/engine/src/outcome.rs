//! What a guest's export gives back, told apart from what its host calls bring.
//!
//! Both are counted against the same allowance while they are copied out of the guest, and wasmtime reports both the
//! same way. Only here is it known that it was a result that was too large.

use wasmtime::component::{
    __internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LiftContext},
    ComponentType, Lift,
};

/// A result, or the error [`TooLarge`] if there is too much of it.
pub(crate) struct Outcome<T>(pub(crate) T);

/// A result takes more than its store's allowance.
#[derive(Debug, thiserror::Error)]
#[error("the result is too large")]
pub(crate) struct TooLarge;

// SAFETY: everything is that of `T`.
unsafe impl<T: ComponentType> ComponentType for Outcome<T> {
    type Lower = T::Lower;
    const ABI: CanonicalAbiInfo = T::ABI;
    const IS_RUST_UNIT_TYPE: bool = T::IS_RUST_UNIT_TYPE;
    const MAY_REQUIRE_REALLOC: bool = T::MAY_REQUIRE_REALLOC;

    fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
        T::typecheck(ty, types)
    }
}

// SAFETY: as above; only the error is another one.
unsafe impl<T: Lift> Lift for Outcome<T> {
    fn linear_lift_from_flat(
        context: &mut LiftContext<'_>,
        ty: InterfaceType,
        source: &Self::Lower,
    ) -> wasmtime::Result<Self> {
        T::linear_lift_from_flat(context, ty, source).map(Self).map_err(told)
    }

    fn linear_lift_from_memory(
        context: &mut LiftContext<'_>,
        ty: InterfaceType,
        bytes: &[u8],
    ) -> wasmtime::Result<Self> {
        T::linear_lift_from_memory(context, ty, bytes).map(Self).map_err(told)
    }
}

fn told(reason: wasmtime::Error) -> wasmtime::Error {
    if crate::trap::is_allowance(&format!("{reason:#}")) { TooLarge.into() } else { reason }
}
