"""What is known of single sites, as data: `site_rules.yaml`, its reader and the rules themselves."""
