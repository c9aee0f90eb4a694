import Larder
import Synchronization
import TestSupport

/// Counts the updates that have written something.
final class CommitCounter<Base: DataStore>: ForwardingDecorator {
  typealias Value = Base.Value

  let base: Base
  private let updates = Mutex(0)

  init(_ base: Base) {
    self.base = base
  }

  var updateCount: Int { updates.withLock { $0 } }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    let result = try await base.update(keys, body)
    updates.withLock { $0 += 1 }
    return result
  }
}
