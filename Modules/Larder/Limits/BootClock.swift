import Foundation

extension SharedClock {
  /// The steady clock of this machine since it was started.
  ///
  /// It also runs while it sleeps.
  ///
  /// All processes of the machine read the same time, also those in containers. Its origin is the boot, so a time that
  /// was stored before a restart of the machine is recognized as one. It is `CLOCK_BOOTTIME` with the kernel's
  /// identifier of the boot on Linux, and the continuous time with the identifier of the boot session on Apple systems.
  ///
  /// A virtual machine that is restored from a snapshot continues with the origin and the time of the snapshot.
  public static let boot = SharedClock(spansHosts: false) {
    guard let origin = bootOrigin else {
      throw StoreError(
        .unsupported, during: .clock,
        message: "the system does not identify its boot, so processes cannot compare their times; pass another clock")
    }
    // The reading of the system is that since the boot, although `ElapsedTime` promises less.
    return ClockReading(origin: origin, nanoseconds: ElapsedTime.systemNanoseconds())
  }

  /// The identity of the boot, and of the namespace of times, whose clock has an offset.
  private static let bootOrigin: UInt128? = {
    #if canImport(Darwin)
    var size = 0
    guard sysctlbyname("kern.bootsessionuuid", nil, &size, nil, 0) == 0, size > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: size)
    guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0 else { return nil }
    #else
    guard let boot = FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id"), !boot.isEmpty else {
      return nil
    }
    // Kernels before 5.6 have no namespaces of times.
    let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/time")
    let bytes = Array(boot) + Array((namespace ?? "").utf8)
    #endif
    return bytes.withUnsafeBytes { KeyDigest.digest(of: $0) }.prefix(16).reduce(0) { $0 << 8 | UInt128($1) }
  }()
}
