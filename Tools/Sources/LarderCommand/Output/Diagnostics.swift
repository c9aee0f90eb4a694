/// Writes to standard error.
enum Diagnostics {
  /// Writes a line.
  static func writeLine(_ line: String) {
    write(line + "\n")
  }

  /// Writes text as it is.
  static func write(_ text: String) {
    do throws(SystemError) {
      try Descriptor.standardError.write(Array(text.utf8))
    } catch {
      // There is no other place where this failure could be told.
    }
  }
}
