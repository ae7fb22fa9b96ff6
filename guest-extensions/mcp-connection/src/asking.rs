//! What one server asks of us: several things beside each other, and never more than a few.

use futures::{
    StreamExt as _,
    future::{Either, select},
    stream::FuturesUnordered,
};
use tokio::sync::watch;

use atoll_mcp_client::session::{Asked, Session};

use crate::Answers;

/// How many are answered at once; the others wait.
const AT_ONCE: usize = 4;

/// How many are being answered.
#[derive(Debug)]
pub(crate) struct Asking(watch::Sender<usize>);

impl Default for Asking {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

/// One is being answered for as long as this is there.
struct One<'a>(&'a watch::Sender<usize>);

impl<'a> One<'a> {
    fn of(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Asking {
    /// Answers until the connection ends. What is still being answered then is dropped, and a dialog with it.
    pub(crate) async fn serve(&self, server: &str, session: &Session, answers: Option<&dyn Answers>) {
        let Some(answers) = answers else { return };
        let mut under_way = FuturesUnordered::new();
        loop {
            let ask = if under_way.len() >= AT_ONCE {
                under_way.next().await;
                continue;
            } else if under_way.is_empty() {
                session.asked().await
            } else {
                let asked = std::pin::pin!(session.asked());
                match select(asked, under_way.next()).await {
                    Either::Left((ask, _)) => ask,
                    Either::Right(_) => continue,
                }
            };
            let Some(ask) = ask else { return };
            under_way.push(async {
                let _one = One::of(&self.0);
                let answer = match ask.what.clone() {
                    Asked::Sample(params) => answers.sample(server, params),
                    Asked::Elicit(params) => answers.elicit(server, params),
                };
                ask.answer_with(answer).await;
            });
        }
    }

    /// Returns once nothing is being answered.
    pub(crate) async fn nothing(&self) {
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Returns once something is.
    pub(crate) async fn something(&self) {
        let _ = self.0.subscribe().wait_for(|count| *count > 0).await;
    }
}
