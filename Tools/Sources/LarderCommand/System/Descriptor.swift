#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// An open file, pipe or terminal; a plain name for it, which closes nothing.
struct Descriptor: Equatable {
  /// The number by which the system knows it.
  let number: Int32

  /// Where a program reads from unless told otherwise.
  static let standardInput = Descriptor(number: STDIN_FILENO)
  /// Where a program writes its results.
  static let standardOutput = Descriptor(number: STDOUT_FILENO)
  /// Where a program says what goes wrong.
  static let standardError = Descriptor(number: STDERR_FILENO)

  /// Opens a file for reading.
  ///
  /// - Throws: ``SystemError``.
  init(reading path: String) throws(SystemError) {
    number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw .last }
  }

  init(number: Int32) {
    self.number = number
  }

  /// Closes it.
  func close() {
    // There is nothing to lose where one has only read.
    #if canImport(Darwin)
    _ = Darwin.close(number)
    #elseif canImport(Glibc)
    _ = Glibc.close(number)
    #elseif canImport(Musl)
    _ = Musl.close(number)
    #endif
  }

  /// Reads what is there, or waits for it.
  ///
  /// - Returns: How many bytes were read; 0 at the end.
  /// - Throws: ``SystemError``.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    while true {
      #if canImport(Darwin)
      let count = Darwin.read(number, buffer.baseAddress, buffer.count)
      #elseif canImport(Glibc)
      let count = Glibc.read(number, buffer.baseAddress, buffer.count)
      #elseif canImport(Musl)
      let count = Musl.read(number, buffer.baseAddress, buffer.count)
      #endif
      if count >= 0 { return count }
      try wait(for: POLLIN, after: .last)
    }
  }

  /// Writes all of some bytes.
  ///
  /// - Throws: ``SystemError``.
  func write(_ bytes: [UInt8]) throws(SystemError) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
        #if canImport(Darwin)
        return Darwin.write(number, rest.baseAddress, rest.count)
        #elseif canImport(Glibc)
        return Glibc.write(number, rest.baseAddress, rest.count)
        #elseif canImport(Musl)
        return Musl.write(number, rest.baseAddress, rest.count)
        #endif
      }
      if count >= 0 {
        written += count
      } else {
        try wait(for: POLLOUT, after: .last)
      }
    }
  }

  /// Goes on after a signal, and waits where someone else has made the descriptor non-blocking.
  private func wait(for event: Int32, after error: SystemError) throws(SystemError) {
    switch error.code {
    case EINTR:
      return
    case EAGAIN:
      var request = pollfd(fd: number, events: Int16(event), revents: 0)
      guard poll(&request, 1, -1) >= 0 || errno == EINTR else { throw .last }
    default:
      throw error
    }
  }

  /// Whether a person sits at the other end.
  var isTerminal: Bool { isatty(number) == 1 }

  /// How many characters fit on a line of the terminal, or `nil` where that is not known.
  var columns: Int? {
    var size = winsize()
    guard ioctl(number, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// How many bytes are left to read, or `nil` where that is not known, as with a pipe.
  var remainingBytes: Int? {
    var status = stat()
    guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let position = lseek(number, 0, SEEK_CUR)
    return position < 0 ? nil : max(0, Int(status.st_size) - Int(position))
  }

  /// Makes sure that the numbers of the standard streams belong to them.
  ///
  /// Where a program is started with one of them closed, the next file it opens gets that number: results or errors would
  /// be written into a store. Reading and writing a stream that was closed goes on failing.
  static func reserveStandardStreams() {
    for stream in [standardInput, standardOutput, standardError] where fcntl(stream.number, F_GETFD) == -1 {
      // The lowest free number is taken, which is this one; opened the wrong way round, so that its use is an error.
      _ = open("/dev/null", stream == standardInput ? O_WRONLY : O_RDONLY)
    }
  }

  /// Makes writing to a pipe that nobody reads an error, instead of the sudden end of the program.
  static func ignorePipeSignal() {
    _ = signal(SIGPIPE, SIG_IGN)
  }
}
