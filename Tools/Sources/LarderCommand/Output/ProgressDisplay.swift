/// Shows the progress of an import or a copy on a terminal, in one line that is drawn again and again.
struct ProgressDisplay {
  /// The time from one drawing to the next.
  static let interval = Duration.milliseconds(100)

  private let total: Int?
  private let width: () -> Int
  private let elapsed: () -> Duration
  private let write: (String) -> Void
  private var lastDrawn: Duration?
  private var isVisible = false

  /// Makes a display.
  ///
  /// - Parameters:
  ///   - total: How much there is to do, in bytes or in entries; `nil` where that is not known.
  ///   - width: How many characters fit on a line now.
  ///   - elapsed: How long it has taken so far.
  ///   - write: Writes to the terminal.
  init(
    total: Int?,
    width: @escaping () -> Int,
    elapsed: @escaping () -> Duration,
    write: @escaping (String) -> Void
  ) {
    self.total = total
    self.width = width
    self.elapsed = elapsed
    self.write = write
  }

  /// Draws the line where it is time to.
  ///
  /// - Parameters:
  ///   - done: How much is done, counted as the total is.
  ///   - entries: How many entries were taken.
  mutating func update(done: Int, entries: Int) {
    let now = elapsed()
    // The first drawing waits, too: what is done at once needs no bar.
    guard now - (lastDrawn ?? .zero) >= ProgressDisplay.interval else { return }
    lastDrawn = now
    let bar = ProgressBar(done: done, total: total, entries: entries, elapsed: now)
    // The last column stays free: some terminals begin a new line once it is written.
    write("\r\(bar.line(width: width() - 1))\u{1B}[K")
    isVisible = true
  }

  /// Takes the line away, so that something else can be written.
  mutating func clear() {
    guard isVisible else { return }
    write("\r\u{1B}[K")
    isVisible = false
  }
}

extension ProgressDisplay {
  /// Makes a display on standard error, or `nil` where that is no terminal.
  ///
  /// - Parameters:
  ///   - total: How much there is to do, in bytes or in entries; `nil` where that is not known.
  ///   - start: When it began.
  init?(total: Int?, since start: ContinuousClock.Instant) {
    guard Descriptor.standardError.isTerminal else { return nil }
    self.init(
      total: total, width: { Descriptor.standardError.columns ?? 80 }, elapsed: { ContinuousClock.now - start },
      write: Diagnostics.write)
  }
}
