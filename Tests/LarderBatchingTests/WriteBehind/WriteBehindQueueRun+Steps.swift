extension WriteBehindQueueRun {
  /// An event that may happen next.
  enum Step: Hashable {
    case write(String)
    case turn
    case drain(isPatient: Bool)
    case close
    case abandon
    case leave(Int)
    case endTurn
    case ask
    case finish(Ending)
    case takeFailures
    case wait
  }

  /// The end of a flush.
  enum Ending: CaseIterable {
    case success
    /// The first batch is given up.
    case failure
    /// The first batch must be tried again.
    case oneRetry
    /// Every batch must be tried again.
    case outage
  }

  static let closing = Step.close

  static let limit = 4
  static let maximumAge = 2
  static let readRetries = 1
}
