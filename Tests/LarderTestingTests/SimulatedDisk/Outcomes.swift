import LarderTesting

/// Runs an experiment on many disks with different seeds.
///
/// - Returns: The outcomes that occurred at least once.
func outcomes<Outcome: Hashable>(
  of experiment: (SimulatedFileSystem) throws -> Outcome
) rethrows -> Set<Outcome> {
  Set(try (0..<400).map { try experiment(SimulatedFileSystem(seed: $0)) })
}
