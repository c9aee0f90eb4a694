#if HTTPCache
import Foundation
import Larder

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that a task of a `URLSession` carries out, and its response.
///
/// The delegate of the session calls the methods `receive` and `finish`. One task reads the response.
final class Transfer: Sendable {
  private struct State {
    var response: HTTPURLResponse?
    var intake = BodyIntake()
    var isSuspended = false

    /// The number of changes, so a reader does not wait for one that has happened.
    var changes = 0
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let task: URLSessionDataTask
  private let unreadLimit: Int
  private let state = Locked(State())

  init(_ task: URLSessionDataTask, unreadLimit: Int) {
    self.task = task
    self.unreadLimit = unreadLimit
  }

  // MARK: The delegate

  func receive(_ response: HTTPURLResponse) {
    change { $0.response = response }
  }

  /// Takes bytes of the body.
  ///
  /// If too many wait for the reader, the task is suspended on Apple's systems. On other systems, a task that is suspended
  /// begins again when it is resumed, so the transfer fails.
  func receive(_ data: Data) {
    let isFull = change { state in
      state.intake.append(data)
      guard state.intake.unreadCount > unreadLimit, !state.intake.isEnded, !state.isSuspended else { return false }
      #if !canImport(FoundationNetworking)
      state.isSuspended = true
      // Under the lock, so that a reader cannot resume the task before it is suspended.
      task.suspend()
      #endif
      return true
    }
    #if canImport(FoundationNetworking)
    guard isFull else { return }
    finish(CachedURLSessionError.unreadBodyTooLarge(unreadLimit))
    task.cancel()
    #else
    _ = isFull
    #endif
  }

  /// Ends the response.
  ///
  /// - Parameters:
  ///   - failure: The error if it was cut short.
  ///   - response: The response of the task, whose head the delegate may not have received. Defaults to `nil`.
  func finish(_ failure: (any Error)?, response: HTTPURLResponse? = nil) {
    let dropped = change { state in
      state.response = state.response ?? response
      return state.intake.end(failure)
    }
    withExtendedLifetime(dropped) {}
  }

  // MARK: The reader

  /// Starts the task, and returns the head of the response as soon as it has arrived.
  ///
  /// - Throws: `URLError`, ``CachedURLSessionError``, or `CancellationError`.
  func head() async throws -> HTTPURLResponse {
    task.resume()
    return try await next { state in
      if let response = state.response { return response }
      guard state.intake.isEnded else { return nil }
      if case .failure(let error) = state.intake.next() { throw error }
      throw CachedURLSessionError.notHTTP
    }
  }

  /// Returns the next bytes of the body, or `nil` at its end.
  ///
  /// - Throws: `URLError`, ``CachedURLSessionError``, or `CancellationError`.
  func nextBytes() async throws -> Data? {
    let step = try await next { state -> BodyIntake.Step? in
      let step = state.intake.next()
      if case .wait = step { return nil }
      return step
    }
    resumeIfRoom()
    switch step {
    case .bytes(let data): return data
    case .failure(let error): throw error
    case .wait, .end: return nil
    }
  }

  /// Ends the transfer if it has not ended.
  func cancel() {
    finish(CancellationError())
    task.cancel()
  }

  private func resumeIfRoom() {
    state.withLock { state in
      guard state.isSuspended, state.intake.unreadCount <= unreadLimit / 2 else { return }
      state.isSuspended = false
      task.resume()
    }
  }

  /// Waits until a closure returns a value.
  private func next<Value: Sendable>(_ step: @Sendable (inout State) throws -> Value?) async throws -> Value {
    try await withTaskCancellationHandler {
      while true {
        let (value, seen) = try state.withLock { state in (try step(&state), state.changes) }
        if let value { return value }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
          let isChanged = state.withLock { state in
            guard state.changes == seen else { return true }
            state.waiter = continuation
            return false
          }
          if isChanged { continuation.resume() }
        }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Changes the state, and wakes the reader.
  @discardableResult
  private func change<Value: Sendable>(_ body: @Sendable (inout State) -> Value) -> Value {
    let (value, waiter) = state.withLock { state in
      let value = body(&state)
      state.changes += 1
      defer { state.waiter = nil }
      return (value, state.waiter)
    }
    waiter?.resume()
    return value
  }
}

/// The body of a response, read while it is iterated.
///
/// It can be iterated once. If it is released before its end, the transfer is cancelled.
final class TransferBody: AsyncSequence, Sendable {
  private let transfer: Transfer

  init(_ transfer: Transfer) {
    self.transfer = transfer
  }

  deinit {
    transfer.cancel()
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    let body: TransferBody

    @concurrent
    func next() async throws -> Data? { try await body.transfer.nextBytes() }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(body: self)
  }
}
#endif
