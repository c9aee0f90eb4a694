// A source may be used from any thread, but Dispatch does not declare it so.
@preconcurrency import Dispatch

#if canImport(Darwin)

/// Hears from the system of memory pressure.
final class SystemMemoryPressure: MemoryPressureSource {
  private let source: any DispatchSourceMemoryPressure

  /// Begins to listen.
  ///
  /// - Parameter handler: What is told.
  init?(handler: @escaping MemoryPressureMonitor.Handler) {
    source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global(qos: .utility))
    source.setEventHandler { [source] in
      handler(source.data.contains(.critical) ? .critical : .warning)
    }
    source.activate()
  }

  func cancel() {
    source.cancel()
  }
}

#else

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Asks Linux for memory pressure, where it tells: for that of the process's control group, or else of the whole
/// system.
final class SystemMemoryPressure: MemoryPressureSource {
  /// Time enough for the average of ten seconds to change, and for a trim to show in it.
  private static var interval: DispatchTimeInterval { .seconds(2) }

  private let timer: any DispatchSourceTimer

  /// Begins to ask.
  ///
  /// - Parameter handler: What is told, each time.
  /// - Returns: `nil` where the system does not tell.
  init?(handler: @escaping MemoryPressureMonitor.Handler) {
    guard let path = SystemMemoryPressure.readablePath else { return nil }
    timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
    timer.schedule(
      deadline: .now() + SystemMemoryPressure.interval, repeating: SystemMemoryPressure.interval, leeway: .seconds(1))
    timer.setEventHandler {
      handler(SystemMemoryPressure.stall(at: path)?.pressure ?? .none)
    }
    timer.activate()
  }

  func cancel() {
    timer.cancel()
  }

  private static var readablePath: String? {
    let group = text(at: "/proc/self/cgroup").flatMap(ControlGroup.path)
    let paths = [group.map { "/sys/fs/cgroup\($0)/memory.pressure" }, "/proc/pressure/memory"]
    return paths.compactMap { $0 }.first { stall(at: $0) != nil }
  }

  private static func stall(at path: String) -> PressureStall? {
    text(at: path).flatMap { PressureStall($0) }
  }

  /// The text of a file of the system's; `nil` where it cannot be read, which means that the system does not tell.
  private static func text(at path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}

#endif
