/// What can go wrong with a request.
enum Fault: CaseIterable, Sendable {
  /// The server answers that it cannot.
  case serverError
  /// The connection is cut before the server has looked at the request.
  case cutBefore
  /// The server has taken the batch, but the connection is cut before it says so.
  case cutBehind
  /// The server has taken the batch, but says nothing.
  case silence
}
