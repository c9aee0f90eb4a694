import Foundation
import Testing

@testable import EventUploader

@Suite("What the server takes")
struct CollectorTests {
  private func event(_ number: Int, task: Int = 0) -> Event { Event(session: "s", task: task, number: number) }

  private func body(_ events: Event...) throws -> Data { try JSONEncoder().encode(EventBatch(events: events)) }

  @Test("Each event counts once, however often it comes")
  func countsOnce() throws {
    let collector = Collector(plan: FaultPlan(rate: 0, seed: 1))
    #expect(collector.take(try body(event(0), event(1))) == .status(204))
    #expect(collector.take(try body(event(1), event(2))) == .status(204))
    let intake = collector.intake
    #expect(intake.received == ["s/0/0", "s/0/1", "s/0/2"])
    #expect(intake.duplicateCount == 1 && intake.requestCount == 2 && intake.unorderedBatchCount == 0)
  }

  @Test("A batch in which a task's events are mixed up is noticed")
  func noticesDisorder() throws {
    #expect(EventBatch(events: [event(0), event(5, task: 1), event(1), event(6, task: 1)]).isOrdered)
    #expect(!EventBatch(events: [event(1), event(0)]).isOrdered)
    #expect(!EventBatch(events: [event(0), event(1, task: 1), event(0)]).isOrdered)
    let collector = Collector(plan: FaultPlan(rate: 0, seed: 1))
    _ = collector.take(try body(event(1), event(0)))
    #expect(collector.intake.unorderedBatchCount == 1)
    #expect(!Proof(recorded: [], intake: collector.intake).holds)
  }

  @Test("What makes no sense is refused, and is no event")
  func refusesNonsense() {
    let collector = Collector(plan: FaultPlan(rate: 0, seed: 1))
    #expect(collector.take(Data("{}".utf8)) == .status(400))
    #expect(collector.intake.received.isEmpty && collector.intake.refusedCount == 1)
  }

  @Test("Faults are those of the plan, and take the events or do not")
  func failsByPlan() throws {
    let collector = Collector(plan: FaultPlan(rate: 0.5, seed: 7))
    var plan = FaultPlan(rate: 0.5, seed: 7)
    var kinds: Set<Fault> = []
    for number in 0..<400 {
      let answer = collector.take(try body(event(number)))
      let fault = plan.next()
      if let fault { kinds.insert(fault) }
      let isTaken = collector.intake.received.contains("s/0/\(number)")
      switch fault {
      case nil: #expect(answer == .status(204) && isTaken)
      case .serverError: #expect(answer == .status(503) && !isTaken)
      case .cutBefore: #expect(answer == .cut && !isTaken)
      case .cutBehind: #expect(answer == .cut && isTaken)
      case .silence: #expect(answer == .silence && isTaken)
      }
    }
    #expect(kinds == Set(Fault.allCases))
  }

  @Test("A lost event shows")
  func showsLoss() throws {
    let collector = Collector(plan: FaultPlan(rate: 0, seed: 1))
    _ = collector.take(try body(event(0)))
    #expect(Proof(recorded: ["s/0/0"], intake: collector.intake).holds)
    let proof = Proof(recorded: ["s/0/0", "s/0/1"], intake: collector.intake)
    #expect(!proof.holds && proof.lost == ["s/0/1"] && "\(proof)".contains("1 events were lost"))
  }
}
