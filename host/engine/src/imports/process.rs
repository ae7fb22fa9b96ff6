//! `process`.

use std::{sync::Arc, time::Duration};

use rustix::process::Signal;
use wasmtime::{
    AsContextMut as _,
    component::{Access, Accessor, Resource, StreamReader},
};

use super::{Host, caller, contract, handle};
use crate::{
    byte_streams::FromQueue,
    processes::{self, Launch, OutputPlan, Running},
    state::PluginState,
};
use contract::process as wit;

/// Handle of a process.
#[derive(Clone)]
pub struct Child(Arc<Running>);

type Answer<V> = wasmtime::Result<Result<V, contract::types::Error>>;

impl wit::HostChild for PluginState {
    fn pid(&mut self, child: Resource<Child>) -> wasmtime::Result<u32> {
        Ok(self.resources.get(&child)?.0.pid)
    }

    fn kill(&mut self, child: Resource<Child>, signal: wit::Signal) -> wasmtime::Result<()> {
        let signal = match signal {
            wit::Signal::Interrupt => Signal::INT,
            wit::Signal::Terminate => Signal::TERM,
            wit::Signal::Kill => Signal::KILL,
        };
        self.resources.get(&child)?.0.signal(signal);
        Ok(())
    }

    fn drop(&mut self, child: Resource<Child>) -> wasmtime::Result<()> {
        self.resources.delete(child)?;
        Ok(())
    }
}

impl<T: Send + 'static> wit::HostChildWithStore<T> for Host {
    fn stdout(mut access: Access<'_, T, Self>, child: Resource<Child>) -> wasmtime::Result<StreamReader<u8>> {
        let queue = access.get().resources.get(&child)?.0.take_stdout();
        StreamReader::new(access.as_context_mut(), queue.map_or_else(FromQueue::empty, FromQueue::new))
    }

    fn stderr(mut access: Access<'_, T, Self>, child: Resource<Child>) -> wasmtime::Result<StreamReader<u8>> {
        let queue = access.get().resources.get(&child)?.0.take_stderr();
        StreamReader::new(access.as_context_mut(), queue.map_or_else(FromQueue::empty, FromQueue::new))
    }

    async fn write_input(accessor: &Accessor<T, Self>, child: Resource<Child>, data: Vec<u8>) -> Answer<()> {
        let Child(running) = handle(accessor, &child)?;
        if let Err(error) = caller(accessor).check_bytes(data.len()) {
            return Ok(Err(error.into()));
        }
        Ok(running.write_input(&data).await.map_err(Into::into))
    }

    async fn close_input(accessor: &Accessor<T, Self>, child: Resource<Child>) -> wasmtime::Result<()> {
        let Child(running) = handle(accessor, &child)?;
        running.close_input().await;
        Ok(())
    }

    async fn wait(accessor: &Accessor<T, Self>, child: Resource<Child>) -> Answer<wit::Exit> {
        let Child(running) = handle(accessor, &child)?;
        let ended = running.wait().await;
        Ok(ended
            .map(|ended| wit::Exit { code: ended.code, signal: ended.signal, output_held: ended.output_held })
            .map_err(Into::into))
    }

    async fn keep_spill(accessor: &Accessor<T, Self>, child: Resource<Child>) -> Answer<String> {
        let Child(running) = handle(accessor, &child)?;
        let keep = move || running.keep_spill().map(|path| path.to_string_lossy().into_owned());
        Ok(caller(accessor).blocking(keep).await.map_err(Into::into))
    }
}

impl wit::Host for PluginState {
    fn shell(&mut self) -> wasmtime::Result<(String, Vec<String>)> {
        Ok(processes::shell(self.plugin.shared.places.shell.as_deref()))
    }
}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn spawn(accessor: &Accessor<T, Self>, command: wit::Command) -> Answer<Resource<Child>> {
        let plugin = caller(accessor);
        let launch = Launch {
            program: command.program,
            arguments: command.arguments,
            cwd: command.cwd,
            env: command.env,
            clear_env: command.clear_env,
            piped_input: matches!(command.stdin, wit::Input::Piped),
            output: match command.output {
                wit::Output::Null => OutputPlan::Null,
                wit::Output::Merged => OutputPlan::Merged,
                wit::Output::Separate => OutputPlan::Separate,
            },
            linger: Duration::from_millis(command.linger_ms.min(10_000)),
            spill: command.spill,
        };
        match processes::spawn(&plugin, launch).await {
            Ok(running) => Ok(Ok(accessor.with(|mut access| access.get().resources.push(Child(running)))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }
}
