import HummingbirdCore
import Larder
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// The body of a request on its way from a client to the origin.
final class Upload: Sendable {
  private enum State {
    case notStarted
    case running(Task<Void, Never>)
    case ended(isComplete: Bool)
    /// The body of the client is malformed, or ended too early.
    case malformed
  }

  private let body: RequestBody
  private let length: Int?
  private let state = Locked(State.notStarted)

  /// Creates an upload that has not started.
  ///
  /// - Parameters:
  ///   - body: The body.
  ///   - length: The length of the body in bytes; `nil` if the client did not say.
  init(_ body: RequestBody, length: Int?) {
    self.body = body
    self.length = length
  }

  /// A Boolean value that indicates whether the origin was sent all of the body.
  var isComplete: Bool {
    state.withLock { if case .ended(isComplete: true) = $0 { true } else { false } }
  }

  /// A Boolean value that indicates whether the client's body cannot be read to its end.
  var isMalformed: Bool {
    state.withLock { if case .malformed = $0 { true } else { false } }
  }

  /// Starts to send the body.
  ///
  /// If that fails, the connection is closed, so the origin takes no part of a body for the whole.
  func start(over connection: OriginConnection) {
    state.withLock { state in
      guard case .notStarted = state else { return connection.close() }
      state = .running(
        Task {
          var ending = State.ended(isComplete: false)
          do {
            try await withTaskCancellationHandler {
              try await self.send(over: connection)
            } onCancel: {
              connection.close()
            }
            ending = .ended(isComplete: true)
          } catch is HTTPParserError {
            ending = .malformed
          } catch {
            // The connection of the client or of the origin has ended.
          }
          // Before the connection is closed, which is how the request fails.
          self.state.withLock { $0 = ending }
          if case .ended(isComplete: true) = ending { return }
          connection.close()
        })
    }
  }

  /// Stops sending, and returns when the body is no longer read.
  func stop() async {
    let task: Task<Void, Never>? = state.withLock { state in
      switch state {
      case .running(let task): return task
      case .notStarted:
        state = .ended(isComplete: false)
        return nil
      case .ended, .malformed: return nil
      }
    }
    task?.cancel()
    await task?.value
  }

  private func send(over connection: OriginConnection) async throws {
    var count = 0
    for try await buffer in body {
      count += buffer.readableBytes
      try await connection.send(.body(buffer))
    }
    try Task.checkCancellation()
    if let length, length != count { throw OriginError.closed }
    try await connection.send(.end(nil))
  }
}
