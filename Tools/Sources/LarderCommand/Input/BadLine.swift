/// Why a line of input is no entry.
struct BadLine: Error, Equatable {
  /// What is wrong with it.
  let reason: String

  /// Describes what is wrong with a line.
  init(_ reason: String) {
    self.reason = reason
  }
}
