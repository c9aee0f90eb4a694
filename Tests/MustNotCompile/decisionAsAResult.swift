import Larder
import LarderLMDB

// error: use update(deciding:_:) for a body that returns a decision
func discard(_ store: any DataStore<Int>) async throws {
  let body: @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Int> = { slots in
    slots[0] = nil
    return .discard(1)
  }
  _ = try await store.update(["k"], body)
}
