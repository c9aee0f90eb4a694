import Foundation

/// Ends the process when the reader of its standard output is gone.
///
/// Writing would end it too, but a client that has recorded all events no longer writes. If the program that started it
/// was killed, the client would retry a server that is gone, and keep the outbox from the next client forever.
enum OutputWatch {
  /// Starts to watch.
  static func start() {
    Thread.detachNewThread {
      // No events are requested, so that only the end of the pipe is reported.
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0 {
        guard errno == EINTR || errno == EAGAIN else { return }
      }
      _exit(EXIT_FAILURE)
    }
  }
}
