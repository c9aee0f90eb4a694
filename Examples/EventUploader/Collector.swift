import Foundation
import Synchronization

/// What the server does with batches: takes each event once, and fails now and then.
final class Collector: Sendable {
  /// What a request is answered with.
  enum Answer: Equatable {
    case status(Int)
    /// The connection is cut.
    case cut
    /// Nothing comes.
    case silence
  }

  /// What has come in.
  struct Intake: Sendable {
    /// The events, by their identifiers.
    var received: Set<String> = []
    /// How many came that had come before.
    var duplicateCount = 0
    /// How many batches had an event before an older one of the same task.
    var unorderedBatchCount = 0
    /// How many requests there were, by what went wrong with them.
    var faults: [Fault: Int] = [:]
    /// How many requests there were.
    var requestCount = 0
    /// How many of them made no sense.
    var refusedCount = 0
  }

  private struct State: Sendable {
    var plan: FaultPlan
    var intake = Intake()
  }

  private let state: Mutex<State>

  init(plan: FaultPlan) {
    state = Mutex(State(plan: plan))
  }

  /// What has come in so far.
  var intake: Intake { state.withLock { $0.intake } }

  /// Takes a request, or fails.
  ///
  /// - Parameter body: What was sent.
  func take(_ body: Data) -> Answer {
    let batch: EventBatch
    do {
      batch = try JSONDecoder().decode(EventBatch.self, from: body)
    } catch {
      return state.withLock { state in
        state.intake.requestCount += 1
        state.intake.refusedCount += 1
        return .status(400)
      }
    }
    return state.withLock { state in
      state.intake.requestCount += 1
      let fault = state.plan.next()
      if let fault { state.intake.faults[fault, default: 0] += 1 }
      switch fault {
      case .serverError: return .status(503)
      case .cutBefore: return .cut
      case .cutBehind:
        state.intake.add(batch)
        return .cut
      case .silence:
        state.intake.add(batch)
        return .silence
      case nil:
        state.intake.add(batch)
        return .status(204)
      }
    }
  }
}

extension Collector.Intake {
  /// Adds the events of a batch that have not come before.
  mutating func add(_ batch: EventBatch) {
    if !batch.isOrdered { unorderedBatchCount += 1 }
    for event in batch.events {
      if !received.insert(event.id).inserted { duplicateCount += 1 }
    }
  }
}

extension EventBatch {
  /// Whether the events of each task come in the order in which it recorded them, each once.
  var isOrdered: Bool {
    var last: [String: Int] = [:]
    for event in events {
      if let before = last[event.source], before >= event.number { return false }
      last[event.source] = event.number
    }
    return true
  }
}
