import ExampleSupport
import Foundation
import LarderHTTPCache

/// A line on the terminal that shows what the cache does.
///
/// It is not shown if standard error is not a terminal.
struct StatusLine {
  private static let interval = Duration.milliseconds(500)

  private let isShown = isatty(FileHandle.standardError.fileDescriptor) == 1

  /// Draws the line until the task is cancelled, and then ends it.
  ///
  /// - Parameter statistics: A closure that returns the events so far.
  func run(_ statistics: @Sendable () -> HTTPCacheStatistics) async {
    guard isShown else { return }
    while !Task.isCancelled {
      write("\r\(Self.text(statistics()))\u{1B}[K")
      do {
        try await Task.sleep(for: Self.interval)
      } catch {
        break
      }
    }
    write("\r\(Self.text(statistics()))\u{1B}[K\n")
  }

  /// Returns the events in one line.
  static func text(_ statistics: HTTPCacheStatistics) -> String {
    let requests = max(statistics.requestCount, 1)
    let failures = statistics.failureCount + statistics.refusalCount
    return [
      "\(TextFormat.count(statistics.requestCount)) requests",
      "\(TextFormat.percent(Double(statistics.hitCount) / Double(requests))) hits",
      "\(TextFormat.count(statistics.validationCount)) validated",
      "\(TextFormat.count(statistics.staleCount)) stale",
      "\(TextFormat.count(statistics.collapsedCount)) shared",
      "\(TextFormat.count(failures)) failed",
      "\(TextFormat.bytes(Int64(statistics.storedBytesRead))) from the store",
      "\(TextFormat.bytes(Int64(statistics.originBytesRead))) from the origin",
      "\(TextFormat.count(statistics.storeFailureCount)) failures of the store",
    ].joined(separator: "  ")
  }

  private func write(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}
