import Workloads

/// Measures the cost of encryption when a value is encoded or decoded.
enum EncryptionMeasurement {
  /// Compares the cost with the calls of swift-crypto on the same bytes.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    var measured: [Measured] = []
    for cost in Encryption.costs where isWanted(cost.name) {
      let times = try await TimeMeasurement.medians(of: [cost.encrypted, cost.plain, cost.yardstick])
      measured.append(
        Measured(
          name: cost.name, figure: times[0] - times[1], unit: .seconds,
          yardsticks: [Measured.Yardstick(name: cost.yardstick.name, figure: times[2], limit: cost.limit)]))
    }
    return measured
  }
}
