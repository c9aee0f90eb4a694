/// A search through all schedules of a ``ModelledCache``, each state once.
struct ModelCheck<Rule: CachingRule> {
  /// A schedule that leads to something that must not be.
  struct Violation: Error, CustomStringConvertible {
    let fault: String
    let steps: [String]

    var description: String { "\(fault), after\n  \(steps.joined(separator: "\n  "))" }
  }

  private var seen: Set<ModelledCache<Rule>> = []
  private var path: [Int] = []

  /// Looks at every schedule of some callers.
  ///
  /// - Parameter cache: The cache and its callers, before the first step.
  /// - Throws: ``Violation``.
  mutating func run(_ cache: ModelledCache<Rule>) throws {
    seen = []
    path = []
    try visit(cache, from: cache)
  }

  private mutating func visit(_ cache: ModelledCache<Rule>, from start: ModelledCache<Rule>) throws {
    guard seen.insert(cache).inserted else { return }
    let ready = cache.ready
    if cache.orders.isEmpty || ready.isEmpty, let fault = cache.fault {
      throw Violation(fault: fault, steps: steps(from: start))
    }
    for caller in ready {
      var next = cache
      next.go(caller)
      path.append(caller)
      try visit(next, from: start)
      path.removeLast()
    }
  }

  private func steps(from start: ModelledCache<Rule>) -> [String] {
    var cache = start
    return path.map { caller in
      defer { cache.go(caller) }
      return cache.text(of: caller)
    }
  }
}
