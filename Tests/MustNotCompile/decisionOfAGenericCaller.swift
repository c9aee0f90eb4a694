import Larder
import LarderLMDB

// error: use update(deciding:_:) for a body that returns a decision
func update<Result: Sendable>(
  _ store: some DataStore<Int>, _ body: @escaping @Sendable (inout UpdateSlots<Int>) throws -> Result
) async throws -> Result {
  try await store.update(["k"], body)
}

func discard(_ store: some DataStore<Int>) async throws {
  _ = try await update(store) { slots in
    slots[0] = nil
    return UpdateDecision.discard(1)
  }
}
