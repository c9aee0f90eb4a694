import Foundation

/// Ends the process when nobody reads its standard output any more.
///
/// Writing would end it too, but a client that has recorded everything writes no more: when the program that started it
/// was killed, it would try to reach a server that has gone, and keep the outbox from the next client, for ever.
enum OutputWatch {
  /// Begins to watch.
  static func start() {
    Thread.detachNewThread {
      // Nothing is asked for, so that only the end is told.
      var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
      while poll(&output, 1, -1) < 0 {
        guard errno == EINTR || errno == EAGAIN else { return }
      }
      _exit(EXIT_FAILURE)
    }
  }
}
