import Testing

@testable import LarderBatching

@Suite struct GroupOutcomeTests {
  private struct Failed: Error, Equatable { let number: Int }

  // As many as one task tells, as several do, and as does not divide evenly.
  @Test(arguments: [1, 2, 127, 128, 1001])
  func everyCallerIsToldWhatBecameOfItsOwnCall(count: Int) async {
    let calls = (0..<count).map { _ in QueuedCall() }
    let errors = (0..<count).map { $0.isMultiple(of: 3) ? Failed(number: $0) : nil }
    await GroupOutcome(errors: errors).tell(calls)
    for (call, error) in zip(calls, errors) {
      guard case .finished(let told) = await call.wait() else {
        Issue.record("a call that was told of was given a turn")
        continue
      }
      #expect(told as? Failed == error)
    }
  }

  @Test func callersOfAGroupThatSucceededAreToldSo() async {
    let calls = (0..<200).map { _ in QueuedCall() }
    await GroupOutcome(errors: []).tell(calls)
    for call in calls {
      guard case .finished(nil) = await call.wait() else {
        Issue.record("a call that succeeded was not told so")
        continue
      }
    }
  }
}
