/// A fault of a request.
enum Fault: CaseIterable, Sendable {
  /// The server answers with an error.
  case serverError
  /// The connection is cut before the server has read the request.
  case cutBefore
  /// The server has accepted the batch, but the connection is cut before the answer.
  case cutBehind
  /// The server has accepted the batch, but does not answer.
  case silence
}
