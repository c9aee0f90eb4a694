/// The lines of a file or of standard input, one after another.
struct InputLines: ~Copyable {
  private var input: ByteInput
  private var splitter = LineSplitter()
  private var isAtEnd = false

  /// Reads the lines of an input, from where it stands to its end.
  init(_ input: consuming ByteInput) {
    self.input = input
  }

  /// How many bytes were read.
  var bytesRead: Int { input.bytesRead }

  /// How many bytes there are to read, or `nil` where that is not known.
  var totalBytes: Int? { input.totalBytes }

  /// Reads the next line.
  ///
  /// - Returns: The line, or `nil` at the end.
  /// - Throws: ``CommandFailure``.
  mutating func next() throws -> LineSplitter.Line? {
    while true {
      if let line = splitter.next() { return line }
      if isAtEnd { return nil }
      let chunk = try input.read()
      isAtEnd = chunk.isEmpty
      splitter.append(chunk)
      if isAtEnd { splitter.finish() }
    }
  }
}
