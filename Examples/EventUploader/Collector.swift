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
    var received: NotedNames
    /// What has come in, but for the events themselves.
    var intake = Intake()

    /// Adds the events of a batch that have not come before.
    mutating func add(_ batch: EventBatch) throws {
      let newCount = try received.note(batch.events.map(\.id))
      intake.duplicateCount += batch.events.count - newCount
      if !batch.isOrdered { intake.unorderedBatchCount += 1 }
    }
  }

  private let state: Mutex<State>

  /// Makes a collector.
  ///
  /// - Parameters:
  ///   - plan: Which requests fail.
  ///   - received: The events that came in before, to which others are added.
  init(plan: FaultPlan, received: NotedNames) {
    state = Mutex(State(plan: plan, received: received))
  }

  /// What has come in so far.
  var intake: Intake {
    state.withLock { state in
      var intake = state.intake
      intake.received = state.received.names
      return intake
    }
  }

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
      case .cutBehind, .silence, nil: break
      }
      do {
        try state.add(batch)
      } catch {
        // What is not noted has not been received: the client sends it again.
        FileHandle.standardError.write(Data("a batch cannot be noted: \(error)\n".utf8))
        return .status(500)
      }
      return switch fault {
      case .cutBehind: .cut
      case .silence: .silence
      default: .status(204)
      }
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
