//! The order of tools that were registered beside each other.

use super::{Registered, Table, active::Order};

/// How many tools there were at some moment, and which were active.
#[derive(Clone, Debug)]
pub struct Mark {
    tools: usize,
    active: Vec<usize>,
}

impl Table {
    /// Remembers which tools there are now.
    pub fn mark(&self) -> Mark {
        Mark { tools: self.tools.len(), active: self.active.iter().collect() }
    }

    /// Puts what came since `mark` in the order of `rank`, keeping the order within a rank: plugins that registered
    /// beside each other, in no order, are declared in one that is always the same. To be called before the first
    /// request; what was there keeps its place.
    pub fn arrange(&mut self, mark: &Mark, rank: impl Fn(&Registered) -> usize) {
        let first = mark.tools.min(self.tools.len());
        let mut order: Vec<usize> = (first..self.tools.len()).collect();
        order.sort_by_key(|index| rank(&self.tools[*index]));
        // Where each tool is now, by where it was.
        let mut places: Vec<usize> = (0..self.tools.len()).collect();
        for (at, index) in order.iter().enumerate() {
            places[*index] = first + at;
        }
        let (tools, decided) = (self.tools.clone(), self.decided.clone());
        for (old, new) in places.iter().enumerate() {
            self.tools[*new].clone_from(&tools[old]);
            self.decided[*new] = decided[old];
        }
        self.switched_off = self.switched_off.iter().map(|index| places[*index]).collect();
        self.names.values_mut().for_each(|index| *index = places[*index]);
        let mut active: Vec<usize> = self.active.iter().map(|index| places[index]).collect();
        // Behind the last one that was active before stand those that were activated since.
        let since = active.iter().rposition(|index| mark.active.contains(index)).map_or(0, |last| last + 1);
        active[since..].sort_unstable();
        self.active = active.into_iter().collect::<Order>();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Registration, ToolRunner, test_tools};

    fn names(table: &Table) -> (Vec<String>, Vec<String>) {
        let all = table.tools().iter().map(|entry| entry.tool.name.clone()).collect();
        let active = table.active().iter().map(|entry| entry.tool.name.clone()).collect();
        (all, active)
    }

    #[test]
    fn whoever_is_first_the_order_is_the_same() {
        let ranks = ["a", "b", "c"];
        let mut seen = Vec::new();
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
            let runner: Arc<dyn ToolRunner> = test_tools::runner();
            let mut table = Table::new();
            table.register(Registration::builtin("read"), vec![test_tools::tool("read")], &runner).unwrap();
            let mark = table.mark();
            for plugin in order {
                let tools = ["2", "1"].map(|number| test_tools::tool(&format!("{plugin}{number}"))).to_vec();
                table.register(plugin, tools, &runner).unwrap();
            }
            let shared = test_tools::tool("shared");
            for plugin in order {
                table.register(plugin, vec![shared.clone()], &runner).unwrap();
            }
            table.activate(&["b1".to_owned()], false).unwrap();
            table.arrange(&mark, |entry| ranks.iter().position(|plugin| *plugin == entry.plugin).unwrap());
            for name in names(&table).0 {
                assert_eq!(table.reach(crate::Caller::Person, &name).unwrap().tool.name, name);
            }
            assert!(!table.is_active("b1") && table.is_active("b2"));
            seen.push(names(&table));
        }
        assert_eq!(seen[0].0[..4], ["read", "a2", "a1", "a__shared"]);
        assert_eq!(seen[0].1[0], "read");
        assert!(seen.iter().all(|names| *names == seen[0]), "{seen:#?}");
    }
}
