/// Gives way to other tasks until something is so.
func waitUntil(_ condition: () throws -> Bool) async rethrows {
  while try !condition() { await Task.yield() }
}
