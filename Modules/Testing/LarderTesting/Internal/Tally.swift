import Synchronization

/// A count that tasks share.
final class Tally: Sendable {
  private let value = Atomic(0)

  var count: Int { value.load(ordering: .sequentiallyConsistent) }

  /// Adds one.
  ///
  /// - Returns: The count before.
  @discardableResult
  func add() -> Int {
    value.add(1, ordering: .sequentiallyConsistent).oldValue
  }
}
