import Synchronization
import Testing

@testable import LarderBatching

@Suite struct GroupOutcomeTests {
  private struct Failed: Error, Equatable { let number: Int }

  /// Callers who wait, by number.
  private final class Line: Sendable {
    private let callers = Mutex<[Int: QueuedCaller]>([:])
    private let call = QueuedCall()

    var count: Int { callers.withLock { $0.count } }

    /// In the order of their numbers.
    var inOrder: [QueuedCaller] { callers.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }

    func wait(as number: Int) async -> TurnOutcome {
      await withUnsafeContinuation { continuation in
        callers.withLock { $0[number] = QueuedCaller(continuation, call) }
      }
    }
  }

  /// Lets callers wait, tells them of an outcome, and gives what each was told, in the order of the callers.
  private func tellings(_ outcome: GroupOutcome, count: Int) async -> [TurnOutcome] {
    let line = Line()
    return await withTaskGroup(of: (Int, TurnOutcome).self) { tasks in
      for number in 0..<count {
        tasks.addTask { (number, await line.wait(as: number)) }
      }
      await waitUntil { line.count == count }
      await outcome.tell(line.inOrder)
      var tellings: [Int: TurnOutcome] = [:]
      for await (number, telling) in tasks { tellings[number] = telling }
      return tellings.sorted { $0.key < $1.key }.map(\.value)
    }
  }

  // As many as one task tells, as several do, and as does not divide evenly.
  @Test(arguments: [1, 2, 127, 128, 1001])
  func everyCallerIsToldWhatBecameOfItsOwnCall(count: Int) async {
    let errors = (0..<count).map { $0.isMultiple(of: 3) ? Failed(number: $0) : nil }
    for (telling, error) in zip(await tellings(GroupOutcome(errors: errors), count: count), errors) {
      guard case .finished(let told) = telling else {
        Issue.record("a caller that was told of its call was given a turn")
        continue
      }
      #expect(told as? Failed == error)
    }
  }

  @Test func callersOfAGroupThatSucceededAreToldSo() async {
    let tellings = await tellings(GroupOutcome(errors: []), count: 200)
    #expect(tellings.count == 200)
    for telling in tellings {
      guard case .finished(nil) = telling else {
        Issue.record("a caller whose call succeeded was not told so")
        continue
      }
    }
  }
}
