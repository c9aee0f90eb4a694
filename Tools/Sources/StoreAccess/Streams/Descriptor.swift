#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file descriptor of an open file, pipe or terminal, which does not close itself.
package struct Descriptor: Equatable {
  /// The number of the descriptor.
  package let number: Int32

  /// The stream that input comes from by default.
  package static let standardInput = Descriptor(number: STDIN_FILENO)
  /// The stream for results.
  package static let standardOutput = Descriptor(number: STDOUT_FILENO)
  /// The stream for errors and other messages.
  package static let standardError = Descriptor(number: STDERR_FILENO)

  /// Opens a file for reading.
  ///
  /// - Throws: ``SystemError``.
  package init(reading path: String) throws(SystemError) {
    number = open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { throw .last }
  }

  package init(number: Int32) {
    self.number = number
  }

  /// Closes the descriptor.
  package func close() {
    // After reading only, an error is of no consequence.
    #if canImport(Darwin)
    _ = Darwin.close(number)
    #elseif canImport(Glibc)
    _ = Glibc.close(number)
    #elseif canImport(Musl)
    _ = Musl.close(number)
    #endif
  }

  /// Reads the bytes that are available, or waits for some.
  ///
  /// - Returns: The number of bytes read; 0 at the end.
  /// - Throws: ``SystemError``.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
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

  /// Writes bytes completely.
  ///
  /// - Throws: ``SystemError``.
  package func write(_ bytes: [UInt8]) throws(SystemError) {
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

  /// Returns after a signal, and waits if another process has made the descriptor non-blocking.
  ///
  /// - Throws: Any other error.
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

  /// Waits until the reader of a pipe or a socket has closed its end; forever if the descriptor is of another kind.
  ///
  /// - Throws: ``SystemError``.
  package func waitUntilReaderIsGone() throws(SystemError) {
    // Errors and the end of the connection are reported although no event is asked for.
    var request = pollfd(fd: number, events: 0, revents: 0)
    while poll(&request, 1, -1) < 0 {
      guard errno == EINTR else { throw .last }
    }
  }

  /// A Boolean value that indicates whether the descriptor is a terminal.
  package var isTerminal: Bool { isatty(number) == 1 }

  /// The width of the terminal in characters, or `nil` if it is unknown.
  package var columns: Int? {
    var size = winsize()
    guard ioctl(number, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// The number of bytes that are left to read, or `nil` if it is unknown, as with a pipe.
  package var remainingBytes: Int? {
    var status = stat()
    guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let position = lseek(number, 0, SEEK_CUR)
    return position < 0 ? nil : max(0, Int(status.st_size) - Int(position))
  }

  /// Ensures that no file gets the descriptor number of a standard stream.
  ///
  /// If a program is started with such a stream closed, the next file that it opens gets the number, and results or errors
  /// would be written into a store. Reading and writing the closed stream still fails.
  package static func reserveStandardStreams() {
    for stream in [standardInput, standardOutput, standardError] where fcntl(stream.number, F_GETFD) == -1 {
      // `open` returns the lowest free number, which is this one. The wrong mode makes each use an error.
      _ = open("/dev/null", stream == standardInput ? O_WRONLY : O_RDONLY)
    }
  }

  /// Turns writing to a pipe without a reader into an error, which by default ends the process.
  package static func ignorePipeSignal() {
    _ = signal(SIGPIPE, SIG_IGN)
  }
}

/// A failure of a system call.
package struct SystemError: Error, Equatable {
  /// The `errno`.
  package let code: Int32

  /// The `errno` of the last system call.
  package static var last: SystemError { SystemError(code: errno) }

  /// A Boolean value that indicates whether the system refuses access.
  package var isRefusal: Bool { code == EACCES || code == EPERM }

  /// The description of the system.
  package var message: String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
  }
}
