import Testing

@testable import LarderBatching

@Suite struct QueuedCallTests {
  @Test func whoIsCancelledInTheLineLeavesItByItsNumber() {
    for number: UInt64 in [0, 7] {
      let call = QueuedCall()
      #expect(!call.enter(number))
      #expect(call.cancel() == number)
    }
  }

  @Test func whoIsCancelledBeforeIsToldSoInTheLine() {
    let call = QueuedCall()
    #expect(call.cancel() == nil)
    #expect(call.enter(0))
  }
}
