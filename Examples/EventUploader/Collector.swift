import Foundation
import Larder

/// The server's receiver of batches, which accepts each event once and sometimes fails.
final class Collector: Sendable {
  /// The answer to a request.
  enum Answer: Equatable {
    case status(Int)
    /// The connection is cut.
    case cut
    /// There is no answer.
    case silence
  }

  /// The received events and requests.
  struct Intake: Sendable {
    /// The identifiers of the events.
    var received: Set<String> = []
    /// The number of events that had been received before.
    var duplicateCount = 0
    /// The number of batches with an event before an older one of the same task.
    var unorderedBatchCount = 0
    /// The number of requests by fault.
    var faults: [Fault: Int] = [:]
    /// The number of requests.
    var requestCount = 0
    /// The number of invalid requests.
    var refusedCount = 0
  }

  private struct State: Sendable {
    var plan: FaultPlan
    var received: NotedNames
    /// The received figures without the events themselves.
    var intake = Intake()

    /// Adds the events of a batch that were not received before.
    mutating func add(_ batch: EventBatch) throws {
      let newCount = try received.note(batch.events.map(\.id))
      intake.duplicateCount += batch.events.count - newCount
      if !batch.isOrdered { intake.unorderedBatchCount += 1 }
    }
  }

  private let state: Locked<State>

  /// Creates a collector.
  ///
  /// - Parameters:
  ///   - plan: The plan of the requests that fail.
  ///   - received: The events that were received before, to which new ones are added.
  init(plan: FaultPlan, received: NotedNames) {
    state = Locked(State(plan: plan, received: received))
  }

  /// Everything received so far.
  var intake: Intake {
    state.withLock { state in
      var intake = state.intake
      intake.received = state.received.names
      return intake
    }
  }

  /// Accepts a request, or fails as planned.
  ///
  /// - Parameter body: The body of the request.
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
        // An event that is not noted was not received, so the client sends it again.
        FileHandle.standardError.write(Data("a batch could not be saved: \(error)\n".utf8))
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
  /// Returns whether the events of each task are in the order of recording, without duplicates.
  var isOrdered: Bool {
    var last: [String: Int] = [:]
    for event in events {
      if let before = last[event.source], before >= event.number { return false }
      last[event.source] = event.number
    }
    return true
  }
}
