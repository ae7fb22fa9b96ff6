//! The macros that export an implementation. The generated ones name symbols as the component model wants them,
//! which a native linker does not take, so a native build only checks the type.

/// One macro for one kind of plugin.
macro_rules! export_macro {
    ($d:tt $name:ident, $bindings:ident, $generated:ident, $interface:ident) => {
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $name {
            ($d plugin:ident) => {
                const _: () = {
                    #[cfg(target_family = "wasm")]
                    $crate::bindings::$bindings::$generated!($d plugin with_types_in $crate::bindings::$bindings);
                    #[allow(dead_code, reason = "only checked")]
                    fn check() -> impl Sized {
                        fn implements<T: $crate::$interface::Guest>() {}
                        implements::<$d plugin>
                    }
                };
            };
        }
        pub use $name as $interface;
    };
}

export_macro!($ __export_tools, tool_plugin, export_tool_plugin, tools);
export_macro!($ __export_provider, provider_plugin, export_provider_plugin, provider);
export_macro!($ __export_provider_auth, provider_auth_plugin, export_provider_auth_plugin, provider_auth);
export_macro!($ __export_extension, extension_plugin, export_extension_plugin, extension);
export_macro!($ __export_worker, worker_plugin, export_worker_plugin, worker);
