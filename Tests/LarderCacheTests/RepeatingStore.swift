import Larder
import TestSupport
import Testing

/// A store that runs the body of each update twice, as one may whose first commit had no effect.
struct RepeatingStore: ForwardingDecorator {
  typealias Value = Int

  private struct Repetition: Error {}

  let base: MemoryStore<Int>

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) async throws -> Result {
    #expect(throws: Repetition.self) {
      try base.update(keys) { slots in
        _ = try body(&slots)
        throw Repetition()
      }
    }
    return try base.update(keys, body)
  }
}
