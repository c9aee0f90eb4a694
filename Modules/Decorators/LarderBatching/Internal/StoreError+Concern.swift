import Larder

extension StoreError {
  /// Whether a write failed for something in it and with nothing changed, so that another write may succeed.
  ///
  /// After a failed sync nobody knows what is on the disk: that concerns everyone.
  var concernsAChange: Bool {
    guard outcome == .nothingChanged else { return false }
    switch code {
    case .invalidKey, .invalidArgument, .valueTooLarge, .encodingFailed, .full: return true
    case .ioFailed, .closed: return false
    // The codes are an open set: an error that names a key speaks of the change to it.
    default: return key != nil
    }
  }

  /// The error for a caller whose write was in one commit with others: it does not speak of their keys.
  ///
  /// - Parameter outcome: Whether anything may have been changed; as in this error unless given.
  func shared(outcome: Outcome? = nil) -> StoreError {
    StoreError(
      code, during: operation, store: store, message: message, underlying: underlying, isRetryable: isRetryable,
      outcome: outcome ?? self.outcome)
  }
}
