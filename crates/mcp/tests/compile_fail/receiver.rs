use corbie_mcp::mcp_tool;

struct Counter(u32);

impl Counter {
    /// Counts.
    #[mcp_tool]
    fn count(&mut self) {
        self.0 += 1;
    }

    /// Ends.
    #[mcp_tool]
    fn end(self) {}
}

fn main() {}
