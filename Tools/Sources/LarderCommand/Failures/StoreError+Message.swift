import Larder

extension StoreError {
  /// The message, with that of the error which led to this one, where it does not tell it already.
  var fullMessage: String {
    guard let cause = underlying.map({ "\($0)" }), !message.contains(cause) else { return message }
    return "\(message) (\(cause))"
  }
}
