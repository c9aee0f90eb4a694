import ExampleSupport
import Foundation
import Testing

@testable import EventUploader

@Suite("The collector")
struct CollectorTests {
  private func event(_ number: Int, task: Int = 0) -> Event { Event(session: "s", task: task, number: number) }

  private func body(_ events: Event...) throws -> Data { try JSONEncoder().encode(EventBatch(events: events)) }

  private func withCollector(rate: Double = 0, _ body: (Collector) throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      try body(
        Collector(plan: FaultPlan(rate: rate, seed: 7), received: try NotedNames(path: "\(folder)/received")))
    }
  }

  @Test func `Each event counts once, however often it is received`() async throws {
    try await withCollector { collector in
      for events in [[event(0), event(1)], [event(1), event(2)]] {
        let answer = collector.take(try JSONEncoder().encode(EventBatch(events: events)))
        #expect(answer == .status(204))
      }
      let intake = collector.intake
      #expect(intake.received == ["s/0/0", "s/0/1", "s/0/2"])
      #expect(intake.duplicateCount == 1 && intake.requestCount == 2 && intake.unorderedBatchCount == 0)
    }
  }

  @Test func `A batch with a task's events out of order is noticed`() async throws {
    try await withCollector { collector in
      #expect(EventBatch(events: [event(0), event(5, task: 1), event(1), event(6, task: 1)]).isOrdered)
      #expect(!EventBatch(events: [event(1), event(0)]).isOrdered)
      #expect(!EventBatch(events: [event(0), event(1, task: 1), event(0)]).isOrdered)
      _ = collector.take(try body(event(1), event(0)))
      #expect(collector.intake.unorderedBatchCount == 1)
      let proof = Proof(recorded: [], intake: collector.intake)
      #expect(!proof.holds && "\(proof)".hasSuffix("The proof fails. Batches out of order: 1."))
    }
  }

  @Test func `An invalid request is refused and adds no event`() async throws {
    try await withCollector { collector in
      #expect(collector.take(Data("{}".utf8)) == .status(400))
      #expect(collector.intake.received.isEmpty && collector.intake.refusedCount == 1)
    }
  }

  @Test func `Faults follow the plan, and accept the events or do not`() async throws {
    try await withCollector(rate: 0.5) { collector in
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
  }

  @Test func `A lost event is reported`() async throws {
    try await withCollector { collector in
      _ = collector.take(try body(event(0)))
      #expect(Proof(recorded: ["s/0/0"], intake: collector.intake).holds)
      let proof = Proof(recorded: ["s/0/0", "s/0/1"], intake: collector.intake)
      #expect(!proof.holds && proof.lost == ["s/0/1"] && "\(proof)".hasSuffix("The proof fails. Lost events: 1."))
    }
  }
}
