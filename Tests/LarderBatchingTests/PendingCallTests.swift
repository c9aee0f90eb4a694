import Testing

@testable import LarderBatching

@Suite struct PendingCallTests {
  @Test(arguments: [false, true]) func `the outcome arrives before or after the wait`(isEarly: Bool) async {
    for _ in 0..<100 {
      let call = PendingCall()
      if isEarly { call.end(.turn) }
      let waiting = Task { await call.wait() }
      if !isEarly {
        await Task.yield()
        call.end(.turn)
      }
      guard case .turn = await waiting.value else {
        Issue.record("unexpected outcome")
        return
      }
    }
  }
}
