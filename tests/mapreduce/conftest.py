from tests.mapreduce.hadoop_cluster import hadoop_cluster, package_folder

__all__ = ["hadoop_cluster", "package_folder"]
