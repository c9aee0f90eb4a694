/// Yields to other tasks until a condition holds.
func waitUntil(_ condition: () throws -> Bool) async rethrows {
  while try !condition() { await Task.yield() }
}
