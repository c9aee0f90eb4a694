import Synchronization

/// Rings at a time, without looking at the clock until then.
final class QueueAlarm: Sendable {
  private struct Setting: Sendable {
    var deadline: Int64
    var task: Task<Void, Never>
  }

  private let clock: any Clock<Duration>
  private let setting = Mutex<Setting?>(nil)

  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  deinit {
    cancel()
  }

  /// Sets the alarm to another time.
  ///
  /// - Parameters:
  ///   - deadline: When it rings, in microseconds.
  ///   - now: What the time is, in microseconds.
  ///   - ring: What is done then.
  func set(_ deadline: Int64, now: Int64, ring: @escaping @Sendable () -> Void) {
    let clock = clock
    let (difference, overflows) = deadline.subtractingReportingOverflow(now)
    let displaced = setting.withLock { setting -> Task<Void, Never>? in
      if setting?.deadline == deadline { return nil }
      let displaced = setting?.task
      let task = Task.detached { [weak self] in
        do {
          try await clock.sleep(for: .microseconds(overflows ? .max : max(difference, 1)))
        } catch {
          // It was set to another time.
          return
        }
        self?.forget(deadline)
        ring()
      }
      setting = Setting(deadline: deadline, task: task)
      return displaced
    }
    displaced?.cancel()
  }

  private func forget(_ deadline: Int64) {
    setting.withLock { setting in
      if setting?.deadline == deadline { setting = nil }
    }
  }

  /// Lets it not ring.
  func cancel() {
    let displaced = setting.withLock { setting -> Task<Void, Never>? in
      defer { setting = nil }
      return setting?.task
    }
    displaced?.cancel()
  }
}
