import ExampleSupport
import Foundation

/// A line on the terminal that is redrawn while events arrive.
///
/// It is not shown if standard error is not a terminal.
struct LiveSummary {
  private static let interval = Duration.milliseconds(100)

  private let isShown = isatty(FileHandle.standardError.fileDescriptor) == 1

  /// Draws the line until the task is cancelled, and then clears it.
  ///
  /// - Parameter state: A closure that returns the number of recorded events, and the received figures.
  func run(of state: @Sendable () -> (recordedCount: Int, intake: Collector.Intake)) async {
    guard isShown else { return }
    while !Task.isCancelled {
      let (recorded, intake) = state()
      let received = intake.received.count
      let failed = intake.faults.values.reduce(0, +)
      write(
        "\r\(TextFormat.count(recorded)) recorded  \(TextFormat.count(received)) received  "
          + "\(TextFormat.count(max(recorded - received, 0))) in the outbox  \(TextFormat.count(intake.requestCount)) requests, "
          + "\(TextFormat.count(failed)) failed\u{1B}[K")
      do {
        try await Task.sleep(for: Self.interval)
      } catch {
        break
      }
    }
    write("\r\u{1B}[K")
  }

  private func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}
