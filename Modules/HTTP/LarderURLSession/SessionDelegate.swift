#if HTTPCache
import Foundation
import Larder

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate of a session that passes responses on as they arrive and follows no redirects.
final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
  private struct State {
    var transfers: [Int: Transfer] = [:]
    var isInvalidated = false
  }

  private let state = Locked(State())

  /// Creates the task of a request, which has not started.
  ///
  /// - Throws: ``CachedURLSessionError`` if the session was invalidated.
  func transfer(_ request: URLRequest, by session: URLSession, unreadLimit: Int) throws -> Transfer {
    // Within the lock, because a session that is invalidated ends the process if it is asked for a task.
    try state.withLock { state in
      guard !state.isInvalidated else { throw CachedURLSessionError.invalidated }
      let task = session.dataTask(with: request)
      let transfer = Transfer(task, unreadLimit: unreadLimit)
      state.transfers[task.taskIdentifier] = transfer
      return transfer
    }
  }

  /// Ends the creation of tasks.
  ///
  /// - Returns: A Boolean value that indicates whether it had not ended before.
  func invalidate() -> Bool {
    state.withLock { state in
      defer { state.isInvalidated = true }
      return !state.isInvalidated
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { transfer(of: dataTask)?.receive(response) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    transfer(of: dataTask)?.receive(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    // The cache must see each response. The redirect is followed above it.
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let transfer = state.withLock { $0.transfers.removeValue(forKey: task.taskIdentifier) }
    transfer?.finish(error, response: task.response as? HTTPURLResponse)
  }

  private func transfer(of task: URLSessionTask) -> Transfer? {
    state.withLock { $0.transfers[task.taskIdentifier] }
  }
}
#endif
