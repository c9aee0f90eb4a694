/// One operation of a ``ConcurrentHistory``: what was asked, what came back, and when.
public struct ConcurrentOperation: Sendable, Equatable {
  /// What came back, and when.
  public struct Response: Sendable, Equatable {
    /// What came back.
    public let result: HistoryResult

    /// After how many events of the history it came.
    public let time: Int

    /// Describes a response.
    ///
    /// - Parameters:
    ///   - result: What came back.
    ///   - time: After how many events of the history it came.
    public init(_ result: HistoryResult, time: Int) {
      self.result = result
      self.time = time
    }
  }

  /// The task that asked.
  public let task: Int

  /// What it asked.
  public let step: HistoryStep

  /// After how many events of the history the operation was begun.
  public let invocation: Int

  /// What came back; `nil` where the operation failed without saying whether it took effect: it may do so at any later
  /// time, or never.
  public let response: Response?

  /// Describes an operation.
  ///
  /// - Parameters:
  ///   - task: The task that asked.
  ///   - step: What it asked. Steps that open or close the store, and ``HistoryStep/pages(_:size:_:)``, do not happen at
  ///     one moment, and have no place in such a history.
  ///   - invocation: After how many events of the history the operation was begun.
  ///   - response: What came back; `nil` where that is unknown.
  public init(task: Int, _ step: HistoryStep, invocation: Int, response: Response?) {
    self.task = task
    self.step = step
    self.invocation = invocation
    self.response = response
  }
}

extension ConcurrentOperation: CustomStringConvertible {
  /// The operation in a line, like `task 2, 4…7: .value("a") gave [missing]`.
  public var description: String {
    let end = response.map { "\($0.time)" } ?? "?"
    return
      "task \(task), \(invocation)…\(end): \(step) \(response.map { "gave \($0.result)" } ?? "has an unknown outcome")"
  }
}
